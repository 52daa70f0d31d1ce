import type { FastifyReply, FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import { type ChangeHooks, monthlyMaxQuanta } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { Snapshot } from '#operations/views/snapshot-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, idOf, pageOf, readSelection } from '../request-parts.ts';
import { showAction, showActionForecast } from '../views.ts';
import { findServer, serverPrecondition } from './servers.routes.ts';

const readCreate = bodyReader(schemas.CreateSnapshotRequest);
const readRestore = bodyReader(schemas.RestoreSnapshotRequest);

/** Copies of the disks of servers. */
export function snapshotHandlers({ servers, idempotency }: Features) {
  const find = async (call: Call, id: number) => {
    const snapshot = await servers.findSnapshot(call.actor, call.tenant.id, id);
    if (snapshot === null) throw notFound();
    return snapshot;
  };
  const list = async (call: Call, request: FastifyRequest, reply: FastifyReply, serverId: number | null) => {
    const all = await servers.listSnapshots(call.actor, call.tenant.id, serverId);
    const { page, pagination } = pageOf(request, reply, all, (one) => one.id);
    return { snapshots: page.map(showSnapshot), limits: { max: servers.snapshotsMax }, pagination };
  };
  return {
    listSnapshots: (call, request, reply) => list(call, request, reply, null),

    async listServerSnapshots(call, request, reply) {
      const { id } = await findServer(servers, call, idOf(request));
      return list(call, request, reply, id);
    },

    async createSnapshot(call, request, reply) {
      // A missing server is a 404 before anything is said of the body.
      const server = await findServer(servers, call, idOf(request));
      const body = readCreate(call, request);
      const { dry_run: isDryRun, ...wanted } = body;
      const { name } = wanted;
      const precondition = serverPrecondition(servers, call, request);
      if (isDryRun) {
        await servers.createSnapshot(call.actor, call.tenant.id, server.id, name, { isDryRun, precondition });
        return showSnapshotForecast(server, servers.snapshotGbQuanta, call.tenant.currency);
      }
      const made = await idempotent(idempotency, {
        ...{ call, request, reply, body: wanted },
        run: (claim) =>
          servers.createSnapshot(call.actor, call.tenant.id, server.id, name, {
            precondition,
            onSnapshot: async (tx, id) => claim?.bind(tx, { kind: 'snapshot', id }),
          }),
        replay: ({ id }) => find(call, id),
      });
      reply.code(202).header('location', `/api/${call.version}/snapshots/${made.id}`);
      return showSnapshot(made);
    },

    readSnapshot: async (call, request) => showSnapshot(await find(call, idOf(request))),

    async restoreSnapshot(call, request, reply) {
      const { id, serverId } = await find(call, idOf(request));
      const body = readRestore(call, request);
      const { dry_run: isDryRun, ...wanted } = body;
      const precondition = serverPrecondition(servers, call, request, serverId);
      const restore = (hooks: ChangeHooks) =>
        servers.restoreSnapshot(call.actor, call.tenant.id, id, { ...hooks, precondition });
      if (isDryRun) {
        const { hourlyQuanta, monthlyCapQuanta } = await findServer(servers, call, serverId);
        const { action, isRestarted } = await restore({ isDryRun });
        const cost = { hourlyQuanta, monthlyCapQuanta, dueQuanta: 0, isRestarted };
        return showActionForecast(action, cost, call.tenant.currency);
      }
      const action = await idempotent(idempotency, {
        ...{ call, request, reply, body: wanted },
        run: async (claim) => {
          const onAction: ChangeHooks['onAction'] = async (tx, actionId) =>
            claim?.bind(tx, { kind: 'action', id: actionId });
          return (await restore({ onAction })).action;
        },
        async replay(result) {
          const found = await servers.findAction(call.actor, call.tenant.id, result.id);
          if (found === null) throw notFound();
          return found;
        },
      });
      reply.code(202);
      return showAction(action);
    },

    async deleteSnapshot(call, request, reply) {
      const { id } = await find(call, idOf(request));
      readSelection(call, request);
      await servers.deleteSnapshot(call.actor, call.tenant.id, id);
      return reply.code(204).send();
    },
  } satisfies Handlers;
}

function showSnapshotForecast(
  { id, diskGb }: Server,
  gbQuanta: number,
  currency: string,
): schemas.SnapshotForecast {
  return {
    server_id: id,
    disk_gb: diskGb,
    price_per_gb_month: formatQuanta(gbQuanta),
    price_monthly_max: formatQuanta(monthlyMaxQuanta(diskGb, gbQuanta)),
    currency,
  };
}

function showSnapshot(one: Snapshot): schemas.Snapshot {
  return {
    id: one.id,
    tenant_id: one.tenantId,
    server_id: one.serverId,
    name: one.name,
    state: one.state,
    action_id: one.actionId,
    image: { id: one.imageId, slug: one.imageSlug, name: one.imageName },
    disk_gb: one.diskGb,
    size_bytes: one.sizeBytes,
    created_at: one.createdAt.toISOString(),
  };
}
