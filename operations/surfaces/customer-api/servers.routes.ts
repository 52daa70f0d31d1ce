import type { FastifyReply, FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { PowerCommand, ServerFilter, Servers } from '#operations/servers/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import type { Call, Handler } from './call.ts';
import { addDeployBudget } from './rate-headers.ts';
import { notFound } from './select-tenant.ts';
import { compileValidator, convertQuery, invalidFields } from './validate-input.ts';
import { showAction, showServer } from './views.ts';

const checkCreate = compileValidator(schemas.CreateServerRequest);
const checkAction = compileValidator(schemas.ActionRequest);
const checkSelection = compileValidator(schemas.SelectionRequest);
const checkListQuery = compileValidator(schemas.ListServersQuery);

const pageLimitDefault = 50;
const actionsMax = 50;

export interface ServerHandlers {
  listServers: Handler;
  createServer: Handler;
  readServer: Handler;
  destroyServer: Handler;
  listServerActions: Handler;
  actOnServer: Handler;
}

export function serverHandlers(servers: Servers): ServerHandlers {
  return {
    async listServers(call, request, reply) {
      const { filter, order } = readListQuery(request);
      const limit = filter.limit;
      const { afterId: _, ...whole } = filter;
      const [found, total] = await Promise.all([
        servers.listServers(call.actor, call.tenant.id, { ...filter, limit: limit + 1 }),
        servers.countServers(call.actor, call.tenant.id, whole),
      ]);
      const page = found.slice(0, limit);
      const hasMore = found.length > limit;
      const cursor = hasMore ? writeCursor(order, page.at(-1)!.id) : null;
      if (cursor !== null) addLink(reply, `<${nextPage(request, cursor)}>; rel="next"`);
      return {
        servers: page.map((server) => showServer(server, call.tenant.currency)),
        pagination: { limit, total, has_more: hasMore, next_cursor: cursor },
      };
    },

    async createServer(call, request, reply) {
      const body = bodyOf(call, request);
      checkCreate(body);
      const wanted = body as schemas.CreateServerRequest;
      const created = await servers.createServer(call.actor, {
        tenantId: call.tenant.id,
        plan: wanted.plan,
        image: wanted.image,
        location: wanted.location,
        name: wanted.name,
        hostname: wanted.hostname,
        sshKeys: wanted.ssh_keys,
        userData: wanted.user_data,
        labels: wanted.labels,
        billingCycle: wanted.billing_cycle,
      });
      addDeployBudget(reply, created.deploys);
      reply.header('location', `/api/${call.version}/servers/${created.serverId}`).code(201);
      const server = await servers.findServer(call.actor, call.tenant.id, created.serverId);
      if (server === null) throw notFound();
      return { ...showServer(server, call.tenant.currency), root_password: created.rootPassword };
    },

    async readServer(call, request) {
      const server = await servers.findServer(call.actor, call.tenant.id, idOf(request));
      if (server === null) throw notFound();
      return showServer(server, call.tenant.currency);
    },

    async destroyServer(call, request, reply) {
      checkSelection(bodyOf(call, request));
      const action = await servers.destroyServer(call.actor, call.tenant.id, idOf(request));
      reply.code(202);
      return showAction(action);
    },

    async listServerActions(call, request) {
      const actions = await servers.listActions(call.actor, call.tenant.id, idOf(request), actionsMax);
      return {
        actions: actions.map(showAction),
        pagination: { limit: actionsMax, total: actions.length, has_more: false, next_cursor: null },
      };
    },

    async actOnServer(call, request, reply) {
      const id = idOf(request);
      const body = bodyOf(call, request);
      // What is not there is a 404 whatever was asked of it, so that a body tells nothing about another's server.
      if ((await servers.findServer(call.actor, call.tenant.id, id)) === null) throw notFound();
      checkAction(body);
      const action = await servers.changePower(call.actor, call.tenant.id, id, {
        command: commandOf((body as schemas.ActionRequest).action),
      });
      reply.code(action.changed ? 202 : 200);
      return showAction(action);
    },
  };
}

/** The body as an object; v1 knows no `tenant` and ignores one, whatever it is. */
function bodyOf(call: Call, request: FastifyRequest): unknown {
  const body = request.body ?? {};
  if (call.version !== 'v1' || typeof body !== 'object' || Array.isArray(body)) return body;
  const { tenant: _, ...rest } = body as Record<string, unknown>;
  return rest;
}

/** What can't be an id is an id that nothing has. */
function idOf(request: FastifyRequest): number {
  const text = (request.params as { id: string }).id;
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw notFound();
  return id;
}

function commandOf(name: string): PowerCommand {
  const command = schemas.actionAliases[name] ?? name;
  const known = schemas.actionNames.find((candidate) => candidate === command);
  if (known) return known;
  const allowed = [...schemas.actionNames];
  const fault = { path: 'action', code: 'unknown_value', message: 'There is no such action.', allowed };
  throw invalidFields([fault], 'unsupported_action', 'There is no such action. See `fields[0].allowed`.');
}

function readListQuery(request: FastifyRequest): { filter: ServerFilter; order: ServerFilter['order'] } {
  const { tenant: _, ...rest } = request.query as Record<string, unknown>;
  const converted = convertQuery(schemas.ListServersQuery, rest);
  checkListQuery(converted);
  const query = converted as schemas.ListServersQuery;
  const order = query.sort === 'created_at' ? 'oldest' : 'newest';
  const filter: ServerFilter = {
    order,
    limit: query.limit ?? pageLimitDefault,
    ...(query.name === undefined ? {} : { name: query.name }),
    ...(query.plan === undefined ? {} : { plan: query.plan }),
    ...(query.location === undefined ? {} : { location: query.location }),
    ...(query.status === undefined ? {} : { statuses: statusesOf(query.status) }),
    ...(query.cursor === undefined ? {} : { afterId: readCursor(query.cursor, order) }),
  };
  return { filter, order };
}

function statusesOf(text: string): string[] {
  const statuses = text.split(',').map((one) => one.trim());
  const allowed: readonly string[] = schemas.serverStatuses;
  if (statuses.every((one) => allowed.includes(one))) return statuses;
  throw invalidFields([
    { path: 'status', code: 'unknown_value', message: 'There is no such status.', allowed: [...allowed] },
  ]);
}

/** Opaque to callers: the order that the list had, and the last id of its page. */
function writeCursor(order: ServerFilter['order'], id: number): string {
  return Buffer.from(`${order}:${id}`).toString('base64url');
}

function readCursor(cursor: string, order: ServerFilter['order']): number {
  const match = /^(newest|oldest):([1-9]\d{0,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match && match[1] === order) return Number(match[2]);
  throw new HttpError(400, {
    code: 'bad_request',
    reason: 'invalid_cursor',
    message: 'The cursor is not one of this list. Start again without it.',
  });
}

/** Adds to what `Link` says already. */
function addLink(reply: FastifyReply, link: string): void {
  const before = reply.getHeader('link');
  reply.header('link', before === undefined ? link : `${String(before)}, ${link}`);
}

/** The request's own address with another cursor; filters stay as they were. */
function nextPage(request: FastifyRequest, cursor: string): string {
  const url = new URL(request.url, 'http://here');
  url.searchParams.set('cursor', cursor);
  return `${url.pathname}${url.search}`;
}
