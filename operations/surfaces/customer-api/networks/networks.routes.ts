import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { Idempotency } from '#operations/idempotency/index.ts';
import { immutableField, memberCapacity, type Networks } from '#operations/networks/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Network, NetworkFilter, NetworkMember } from '#operations/views/network-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOf } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { labelsOf } from '../read-list-query.ts';
import {
  bodyReader,
  cursorsOf,
  idOf,
  pageOf,
  pageOfFound,
  queryReader,
  readSelection,
} from '../request-parts.ts';
import { serverPrecondition } from '../servers/servers.routes.ts';
import { showAttachment } from '../views.ts';

const readCreate = bodyReader(schemas.CreateNetworkRequest);
const readChange = bodyReader(schemas.ChangeNetworkRequest);
const readAttach = bodyReader(schemas.AttachRequest);
const readQuery = queryReader(schemas.ListNetworksQuery);

const cursors = cursorsOf('networks');
const pageLimitDefault = 50;
/** What a network keeps for good. */
const immutableFields = ['cidr', 'location'] as const;

export function networkHandlers({ networks, servers, idempotency }: Features) {
  return {
    ...collectionHandlers(networks, idempotency),
    ...itemHandlers(networks),
    ...serverNetworkHandlers(networks, servers),
  } satisfies Handlers;
}

function collectionHandlers(networks: Networks, idempotency: Idempotency) {
  return {
    async listNetworks(call, request, reply) {
      const filter = filterOf(request);
      const { afterId: _, ...whole } = filter;
      const { limit } = filter;
      const [found, total, used] = await Promise.all([
        networks.listNetworks(call.actor, call.tenant.id, { ...filter, limit: limit + 1 }),
        networks.countNetworks(call.actor, call.tenant.id, whole),
        networks.countOfTenants([call.tenant.id]),
      ]);
      const cursorOf = ({ id }: Network) => cursors.write(id);
      const { page, pagination } = pageOfFound(request, reply, found, { limit, total, cursorOf });
      return {
        networks: page.map(showNetworkSummary),
        limits: { max: networks.networksMax, used: used.get(call.tenant.id) ?? 0 },
        pagination,
      };
    },

    async createNetwork(call, request, reply) {
      const body = readCreate(call, request);
      const { name, cidr, location, description, labels } = body;
      const tenantId = call.tenant.id;
      const input = { tenantId, name, cidr, location, description, labels };
      const network = await idempotent(idempotency, {
        ...{ call, request, reply, body },
        run: (claim) =>
          networks.createNetwork(call.actor, input, (tx, id) =>
            claim === null ? Promise.resolve() : claim.bind(tx, { kind: 'network', id }),
          ),
        async replay({ id }) {
          const made = await networks.findNetwork(call.actor, tenantId, id);
          if (made === null) throw notFound();
          return made;
        },
      });
      const members = await networks.listMembers(call.actor, tenantId, network.id);
      reply.code(201).header('location', `/api/${call.version}/networks/${network.id}`);
      return showNetwork(network, members);
    },
  } satisfies Handlers;
}

function itemHandlers(networks: Networks) {
  const show = async (call: Call, network: Network) =>
    showNetwork(network, await networks.listMembers(call.actor, call.tenant.id, network.id));
  /** A missing network is a 404 before the body is validated, so that a body reveals nothing about another's network. */
  const find = async (call: Call, request: FastifyRequest) => {
    const network = await networks.findNetwork(call.actor, call.tenant.id, idOf(request));
    if (network === null) throw notFound();
    return network;
  };
  const precondition = (call: Call, request: FastifyRequest) =>
    preconditionOf({
      request,
      schema: schemas.Network,
      async read(tx) {
        const found = await networks.findNetworkIn(tx, call.actor, call.tenant.id, idOf(request));
        return found && showNetwork(found.network, found.members);
      },
    });
  return {
    readNetwork: async (call, request) => show(call, await find(call, request)),

    async changeNetwork(call, request) {
      const { id } = await find(call, request);
      for (const field of immutableFields)
        if (Object.hasOwn(Object(request.body), field)) throw immutableField(field);
      const { name, description, labels } = readChange(call, request);
      const change = { name, description, labels };
      const condition = precondition(call, request);
      return show(call, await networks.changeNetwork(call.actor, call.tenant.id, id, change, condition));
    },

    async deleteNetwork(call, request, reply) {
      const { id } = await find(call, request);
      readSelection(call, request);
      await networks.deleteNetwork(call.actor, call.tenant.id, id, precondition(call, request));
      return reply.code(204).send();
    },

    async syncNetwork(call, request, reply) {
      const { id } = await find(call, request);
      readSelection(call, request);
      reply.code(202);
      const condition = precondition(call, request);
      return show(call, await networks.syncNetwork(call.actor, call.tenant.id, id, condition));
    },
  } satisfies Handlers;
}

function serverNetworkHandlers(networks: Networks, servers: Servers) {
  return {
    async listServerNetworks(call, request, reply) {
      const nics = await networks.listAttachments(call.actor, call.tenant.id, idOf(request));
      const { page, pagination } = pageOf(request, reply, nics, (nic) => nic.networkId);
      return { networks: page.map(showAttachment), pagination };
    },

    async attachServer(call, request, reply) {
      const serverId = idOf(request);
      await networks.listAttachments(call.actor, call.tenant.id, serverId);
      const { network_id: networkId, ip } = readAttach(call, request);
      const input = { serverId, networkId, ip };
      const precondition = serverPrecondition(servers, call, request);
      const { attachment, wasThere } = await networks.attachServer(
        call.actor,
        call.tenant.id,
        input,
        precondition,
      );
      reply.code(wasThere ? 200 : attachment.state === 'attached' ? 201 : 202);
      return showAttachment(attachment);
    },

    async detachServer(call, request, reply) {
      const input = { serverId: idOf(request), networkId: idOf(request, 'network_id') };
      readSelection(call, request);
      reply.code(202);
      const precondition = serverPrecondition(servers, call, request);
      return showAttachment(await networks.detachServer(call.actor, call.tenant.id, input, precondition));
    },
  } satisfies Handlers;
}

function showNetworkSummary(network: Network): schemas.NetworkSummary {
  return {
    id: network.id,
    tenant_id: network.tenantId,
    name: network.name,
    description: network.description,
    cidr: network.cidr,
    gateway: null,
    location: { id: network.locationId, slug: network.locationSlug },
    state: 'active',
    sync: {
      state: network.syncState,
      last_synced_at: network.lastSyncedAt?.toISOString() ?? null,
      error: network.syncError,
    },
    member_count: network.memberCount,
    available_ips: memberCapacity(network.cidr) - network.memberCount,
    labels: network.labels,
    created_at: network.createdAt.toISOString(),
    updated_at: network.updatedAt.toISOString(),
  };
}

function showNetwork(network: Network, members: readonly NetworkMember[]): schemas.Network {
  return {
    ...showNetworkSummary(network),
    members: members.map((member) => ({
      server_id: member.serverId,
      name: member.name,
      ip: member.ip,
      mac_address: member.macAddress,
      state: member.state,
    })),
  };
}

function filterOf(request: FastifyRequest): NetworkFilter {
  const query = readQuery(request);
  return {
    limit: query.limit ?? pageLimitDefault,
    name: query.name,
    serverId: query.server_id,
    labels: query.label === undefined ? undefined : labelsOf(query.label),
    afterId: query.cursor === undefined ? undefined : cursors.read(query.cursor),
  };
}
