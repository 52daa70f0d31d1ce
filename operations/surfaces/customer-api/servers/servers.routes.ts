import type { FastifyReply, FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import { type Servers, statusOf } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOf, tagOf } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { addDeployBudget } from '../rate-headers.ts';
import { readListQuery, writeCursor } from '../read-list-query.ts';
import { bodyReader, idOf, pageOfFound, queryReader, readSelection } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { showAction, showForecast, showServer } from '../views.ts';
import { callerSignal, readWait, waitSecondsMax, waitWhileAllowed } from './prefer-wait.ts';

const readCreate = bodyReader(schemas.CreateServerRequest);
const readCreateV1 = bodyReader(schemas.CreateServerRequestV1);
const readUpdate = bodyReader(schemas.UpdateServerRequest);
const readServerQuery = queryReader(schemas.ReadServerQuery);

export function serverHandlers(deps: Features) {
  const { servers } = deps;
  return {
    listServers: (call, request, reply) => listServers(servers, call, request, reply),
    createServer: (call, request, reply) => createServer(deps, call, request, reply),
    readServer: (call, request, reply) => readServer(deps, call, request, reply),
    async updateServer(call, request) {
      const id = idOf(request);
      // A missing server is a 404 before the body is validated, so that a body reveals nothing about another's server.
      await findServer(servers, call, id);
      const { name, hostname, labels } = readUpdate(call, request);
      const precondition = serverPrecondition(servers, call, request);
      await servers.describeServer(call.actor, call.tenant.id, id, { name, hostname, labels }, precondition);
      return showServer(await findServer(servers, call, id), call.tenant.currency);
    },

    async destroyServer(call, request, reply) {
      readSelection(call, request);
      const precondition = serverPrecondition(servers, call, request);
      const action = await servers.destroyServer(call.actor, call.tenant.id, idOf(request), { precondition });
      reply.code(202);
      return showAction(action);
    },
  } satisfies Handlers;
}

/** Of the workspace of the call; throws the API's 404 for any other. */
export async function findServer(servers: Servers, call: Call, id: number): Promise<Server> {
  const server = await servers.findServer(call.actor, call.tenant.id, id);
  if (server === null) throw notFound();
  return server;
}

async function listServers(servers: Servers, call: Call, request: FastifyRequest, reply: FastifyReply) {
  const filter = readListQuery(request);
  const { limit, order } = filter;
  const { after: _, ...whole } = filter;
  const [found, total] = await Promise.all([
    servers.listServers(call.actor, call.tenant.id, { ...filter, limit: limit + 1 }),
    servers.countServers(call.actor, call.tenant.id, whole),
  ]);
  const cursorOf = (last: Server) => writeCursor(order, last);
  const { page, pagination } = pageOfFound(request, reply, found, { limit, total, cursorOf });
  return { servers: page.map((server) => showServer(server, call.tenant.currency)), pagination };
}

async function createServer(deps: Features, call: Call, request: FastifyRequest, reply: FastifyReply) {
  const { ordering, servers } = deps;
  refuseOtherCycles(request.body);
  const read = call.version === 'v1' ? readCreateV1 : readCreate;
  const { dry_run: isDryRun, ...wanted } = read(call, request);
  const input = orderOf(call, wanted);
  if (isDryRun) {
    const forecast = await ordering.forecastServer(call.actor, input);
    return showForecast(forecast, call.tenant.currency);
  }
  const answer = async (created: { serverId: number; rootPassword: string }) => {
    const server = await findServer(servers, call, created.serverId);
    const shown = showServer(server, call.tenant.currency);
    reply.header('location', `/api/${call.version}/servers/${server.id}`).code(201);
    // Of the server as a read shows it, which is without the password.
    reply.header('etag', tagOf(reply, schemas.Server, shown));
    return { ...shown, root_password: created.rootPassword };
  };
  return idempotent(deps.idempotency, {
    call,
    request,
    reply,
    body: wanted,
    async run(claim) {
      const created = await ordering.createServer(call.actor, input, {
        onOrdered: async (tx, orderId) => claim?.bind(tx, { kind: 'order', id: orderId }),
      });
      addDeployBudget(reply, created.deploys);
      return answer(created);
    },
    // The password is read from the order again: no second copy of it exists anywhere.
    replay: async (result) => answer(await ordering.findOrdered(call.actor, call.tenant.id, result.id)),
  });
}

async function readServer(deps: Features, call: Call, request: FastifyRequest, reply: FastifyReply) {
  const { servers } = deps;
  const id = idOf(request);
  const wanted = readWaitFor(request);
  if (wanted === null) return showServer(await findServer(servers, call, id), call.tenant.currency);
  // Ownership is checked first: a caller cannot wait for another's server.
  await findServer(servers, call, id);
  const seconds = readWait(request, reply) ?? waitSecondsMax;
  const isEnough = (server: Server) => wanted.includes(statusOf(server)) || statusOf(server) === 'failed';
  const server = await waitWhileAllowed(deps.notifications, call, {
    wait: { topic: `server:${id}`, timeoutMs: seconds * 1_000, signal: callerSignal(reply) },
    look: () => findServer(servers, call, id),
    isEnough,
  });
  return showServer(server, call.tenant.currency);
}

/** `If-Match` of a call that changes a server, by default the one in its path. */
export function serverPrecondition(
  servers: Servers,
  call: Call,
  request: FastifyRequest,
  id = idOf(request),
): ReturnType<typeof preconditionOf> {
  return preconditionOf({
    request,
    schema: schemas.Server,
    async read(tx) {
      const server = await servers.findServerIn(tx, call.actor, call.tenant.id, id);
      return server && showServer(server, call.tenant.currency);
    },
  });
}

function orderOf(call: Call, wanted: Omit<schemas.CreateServerRequest, 'dry_run'>) {
  return {
    tenantId: call.tenant.id,
    plan: wanted.plan,
    image: wanted.image,
    snapshotId: wanted.snapshot,
    location: wanted.location,
    name: wanted.name,
    hostname: wanted.hostname,
    sshKeys: wanted.ssh_keys,
    userData: wanted.user_data,
    labels: wanted.labels,
    networkId: wanted.network_id,
    networkIp: wanted.network_ip,
    publicIp: wanted.public_ip,
  };
}

/** The reason of its own that another billing cycle has; the schema would only say that the field is wrong. */
function refuseOtherCycles(body: unknown): void {
  const cycle = (body as { billing_cycle?: unknown } | null)?.billing_cycle;
  if (typeof cycle !== 'string' || cycle === 'hourly') return;
  const fault = {
    path: 'billing_cycle',
    code: 'unknown_value',
    message: 'must be "hourly"',
    allowed: ['hourly'],
  };
  throw invalidFields(
    [fault],
    'billing_cycle_not_supported',
    'Servers are billed hourly here; other cycles are ordered in the portal.',
  );
}

/** `wait_for=status:running,stopped`: the statuses that end the wait; null where nothing is waited for. */
function readWaitFor(request: FastifyRequest): string[] | null {
  const { wait_for: text } = request.query as { wait_for?: unknown };
  const statuses = typeof text === 'string' ? statusesOf(text) : null;
  readServerQuery(request);
  return statuses;
}

function statusesOf(text: string): string[] {
  const statuses =
    /^status:(.+)$/
      .exec(text)?.[1]
      ?.split(',')
      .map((one) => one.trim()) ?? [];
  const allowed: readonly string[] = schemas.serverStatuses;
  if (statuses.length > 0 && statuses.every((one) => allowed.includes(one))) return statuses;
  throw invalidFields([
    {
      path: 'wait_for',
      code: 'format',
      message: 'must be "status:" and one or more statuses, separated by commas',
      allowed: [...allowed],
    },
  ]);
}
