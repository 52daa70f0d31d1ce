import type { FastifyReply, FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { NamedAddress, ReverseDns } from '#operations/reverse-dns/index.ts';
import type { ChangeHooks } from '#operations/servers/index.ts';
import type { ReservedAddress } from '#operations/views/reserved-address-store.ts';
import type { ServerAction } from '#operations/views/server-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOf, preconditionOn } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, idOf, pageOf, readSelection } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { showAction } from '../views.ts';

const readReserve = bodyReader(schemas.ReserveAddressRequest);
const readUpdate = bodyReader(schemas.UpdateAddressRequest);
const readAttach = bodyReader(schemas.AttachAddressRequest);

/** Addresses that the workspace keeps. */
export function addressHandlers(deps: Features) {
  const { addresses, servers } = deps;
  /** A missing address is a 404 before anything is said of the body. */
  const find = async (call: Call, id: number) => {
    const address = await addresses.findReserved(call.actor, call.tenant.id, id);
    if (address === null) throw notFound();
    return address;
  };
  const precondition = (request: FastifyRequest) => preconditionOn(request, schemas.Address, showAddress);
  /** Asks for an action once for each `Idempotency-Key`. */
  const move = async (
    [call, request, reply]: [Call, FastifyRequest, FastifyReply],
    body: unknown,
    ask: (hooks: ChangeHooks) => Promise<ServerAction>,
  ) => {
    const { actor, tenant } = call;
    const id = idOf(request);
    const precondition = preconditionOf({
      request,
      schema: schemas.Address,
      async read(tx) {
        const found = await addresses.lockReserved(tx, actor, tenant.id, id);
        return found && showAddress(found);
      },
    });
    const action = await idempotent(deps.idempotency, {
      ...{ call, request, reply, body },
      run: (claim) =>
        ask({
          precondition,
          onAction: async (tx, actionId) => claim?.bind(tx, { kind: 'action', id: actionId }),
        }),
      async replay(result) {
        const made = await servers.findAction(actor, tenant.id, result.id);
        if (made === null) throw notFound();
        return made;
      },
    });
    reply.code(202);
    return showAction(action);
  };
  return {
    async listAddresses(call, request, reply) {
      const all = await addresses.listReserved(call.actor, call.tenant.id);
      const { page, pagination } = pageOf(request, reply, all, (one) => one.id);
      const limits = { max: addresses.addressesMax, used: all.length };
      return { addresses: page.map(showAddress), limits, pagination };
    },

    async reserveAddress(call, request, reply) {
      // A body that was lost on the way would keep an address that was not meant.
      if (request.body === undefined)
        throw invalidFields([
          {
            path: '',
            code: 'required',
            message: 'send a body; {} keeps an IPv4 address of the only location',
          },
        ]);
      const body = readReserve(call, request);
      const { name, location, family, address } = body;
      const input = {
        tenantId: call.tenant.id,
        name,
        location,
        family: family as 4 | 6 | undefined,
        address,
      };
      const made = await idempotent(deps.idempotency, {
        ...{ call, request, reply, body },
        run: (claim) =>
          addresses.reserveAddress(call.actor, input, async (tx, { id }) =>
            claim?.bind(tx, { kind: 'address', id }),
          ),
        replay: ({ id }) => find(call, id),
      });
      reply.code(201).header('location', `/api/${call.version}/addresses/${made.id}`);
      return showAddress(made);
    },

    readAddress: async (call, request) => showAddress(await find(call, idOf(request))),

    async updateAddress(call, request) {
      const { id } = await find(call, idOf(request));
      const { name } = readUpdate(call, request);
      const input = { tenantId: call.tenant.id, id, name };
      return showAddress(await addresses.renameAddress(call.actor, input, precondition(request)));
    },

    async releaseAddress(call, request, reply) {
      const { id } = await find(call, idOf(request));
      readSelection(call, request);
      await addresses.releaseAddress(call.actor, { tenantId: call.tenant.id, id }, precondition(request));
      return reply.code(204).send();
    },

    async attachAddress(call, request, reply) {
      const { id: addressId } = await find(call, idOf(request));
      const body = readAttach(call, request);
      const { server_id: serverId } = body;
      return move([call, request, reply], body, (hooks) =>
        servers.attachAddress(call.actor, call.tenant.id, { serverId, addressId }, hooks),
      );
    },

    async detachAddress(call, request, reply) {
      const { id } = await find(call, idOf(request));
      const body = readSelection(call, request);
      return move([call, request, reply], body, (hooks) =>
        servers.detachAddress(call.actor, call.tenant.id, id, hooks),
      );
    },
  } satisfies Handlers;
}

function showAddress(one: ReservedAddress): schemas.Address {
  return {
    id: one.id,
    tenant_id: one.tenantId,
    name: one.name,
    address: one.address,
    family: one.family,
    prefix_length: one.prefixLength,
    gateway: one.gateway,
    location: { id: one.locationId, slug: one.locationSlug },
    state: one.state,
    server_id: one.serverId,
    primary: one.isPrimary,
    created_at: one.createdAt.toISOString(),
    updated_at: one.updatedAt.toISOString(),
  };
}

const readSet = bodyReader(schemas.SetReverseDnsRequest);

type ReverseName = NonNullable<Awaited<ReturnType<ReverseDns['findName']>>>;

/** Names of the addresses of servers. */
export function reverseDnsHandlers({ reverseDns }: Features) {
  const addressOf = (call: Call, request: FastifyRequest): NamedAddress => {
    const { address = '' } = request.params as { address?: string };
    return { tenantId: call.tenant.id, serverId: idOf(request), address };
  };
  /** A missing address is a 404 before anything is said of the body. */
  const find = async (call: Call, request: FastifyRequest) => {
    const found = await reverseDns.findName(call.actor, addressOf(call, request));
    if (found === null) throw notFound();
    return found;
  };
  const precondition = (request: FastifyRequest) =>
    preconditionOn(request, schemas.ReverseDns, showReverseDns);
  return {
    readReverseDns: async (call, request) => showReverseDns(await find(call, request)),

    async setReverseDns(call, request) {
      await find(call, request);
      const { reverse_dns: name, force: isForced = false } = readSet(call, request);
      const wanted = { name, isForced };
      return showReverseDns(
        await reverseDns.setName(call.actor, addressOf(call, request), wanted, precondition(request)),
      );
    },

    async deleteReverseDns(call, request, reply) {
      await find(call, request);
      readSelection(call, request);
      await reverseDns.setName(call.actor, addressOf(call, request), { name: null }, precondition(request));
      return reply.code(204).send();
    },
  } satisfies Handlers;
}

function showReverseDns(of: ReverseName): schemas.ReverseDns {
  return {
    server_id: of.serverId,
    tenant_id: of.tenantId,
    address: of.address,
    reverse_dns: of.name,
    status: of.status,
    changed_at: of.changedAt?.toISOString() ?? null,
  };
}
