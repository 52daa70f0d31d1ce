/**
 * The customer API under `/api/v1` and `/api/v2`, made from the contract's endpoint list.
 *
 * Both versions share their handlers; they differ in how the workspace is found. Every response carries its request's
 * id, and no response to a counted call leaves before its count is durable.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, type EndpointId, endpoints } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import { type App, compressAnswer, HttpError } from '#service-kit/http/index.ts';
import { accountHandlers, ledgerHandlers, tenantHandlers } from './account/account.routes.ts';
import { keyHandlers } from './account/key.routes.ts';
import { usageHandlers } from './account/usage.routes.ts';
import { webhookHandlers } from './account/webhooks.routes.ts';
import { addressHandlers, reverseDnsHandlers } from './addresses/addresses.routes.ts';
import { createGate, type Gate } from './authenticate.ts';
import type { Handler, Version } from './call.ts';
import { catalogHandlers } from './catalog/catalog.routes.ts';
import { changeablePart, entityTag, isKnown, refuseIfMatch, requireMatch, tagOf } from './conditional.ts';
import { networkHandlers } from './networks/networks.routes.ts';
import { addRefusedBudget } from './rate-headers.ts';
import { noteMediaType, useBodyReader } from './read-body.ts';
import { baseUrl } from './request-parts.ts';
import { actionHandlers } from './servers/actions.routes.ts';
import { findingHandlers } from './servers/findings.routes.ts';
import { firewallHandlers } from './servers/firewall.routes.ts';
import { incidentHandlers } from './servers/incidents.routes.ts';
import { machineHandlers } from './servers/machine.routes.ts';
import { portHandlers } from './servers/ports.routes.ts';
import { serverHandlers } from './servers/servers.routes.ts';
import { snapshotHandlers } from './servers/snapshots.routes.ts';
import { trafficHandlers } from './servers/traffic.routes.ts';
import { sshKeyHandlers } from './ssh-keys/ssh-keys.routes.ts';
import { translateError } from './translate-error.ts';
import { checkNoQuery } from './validate-input.ts';

/** All features, and what the surface is set to. */
type CustomerApiDeps = Features & {
  /** Requests that one key may make within a minute. */
  requestsPerMinute: number;
  /** Failed authentications of one source within five minutes. */
  authFailuresMax: number;
};

/** Registers the API's routes. */
export async function registerCustomerApi(app: App, deps: CustomerApiDeps): Promise<void> {
  const gate = createGate({
    ...deps,
    keyBudget: deps.limits.createLog('api-key', { capacity: deps.requestsPerMinute, windowMs: 60_000 }),
    authFailures: deps.limits.createLog('api-failures', {
      capacity: deps.authFailuresMax,
      windowMs: 300_000,
    }),
  });
  const handlers: Record<EndpointId, Handler> = {
    ...serverHandlers(deps),
    ...actionHandlers(deps),
    ...machineHandlers(deps),
    ...snapshotHandlers(deps),
    ...addressHandlers(deps),
    ...reverseDnsHandlers(deps),
    ...networkHandlers(deps),
    ...accountHandlers(deps),
    ...trafficHandlers(deps),
    ...incidentHandlers(deps),
    ...portHandlers(deps),
    ...findingHandlers(deps),
    ...firewallHandlers(deps),
    ...tenantHandlers(deps),
    ...keyHandlers(deps),
    ...usageHandlers(deps),
    ...catalogHandlers(deps),
    ...sshKeyHandlers(deps),
    ...ledgerHandlers(deps),
    ...webhookHandlers(deps),
  };
  await app.register(async (scope) => {
    const api = scope as unknown as FastifyInstance;
    api.decorateRequest('call', null);
    api.decorateRequest('hasForeignBody', false);
    useBodyReader(api);
    // Calls that wait for a change get an answer before the server closes.
    api.addHook('preClose', async () => deps.notifications.release());
    api.addHook('onRequest', async (request, reply) => addCommonHeaders(request, reply));
    api.addHook('onSend', (request, reply, payload) => finishAnswer(deps, request, reply, payload));
    api.addHook('onResponse', async (request) => {
      if (request.call !== null) await deps.apiKeys.noteUse(request.call.principal);
    });
    for (const endpoint of endpoints)
      for (const version of endpoint.versions)
        registerEndpoint(api, gate, endpoint, version, handlers[endpoint.id as EndpointId]);
    registerPreflights(api);
  });
  registerUnrouted(app);
}

function registerEndpoint(
  api: FastifyInstance,
  gate: Gate,
  endpoint: Endpoint,
  version: Version,
  handler: Handler,
): void {
  const tagged = taggedStatuses(endpoint);
  api.route({
    method: endpoint.method,
    config: { taggedStatuses: tagged, maxAgeSeconds: endpoint.maxAgeSeconds ?? 0 },
    url: routePath(version, endpoint.path),
    schema: {
      response: Object.fromEntries(
        Object.entries(endpoint.responses).flatMap(([status, response]) =>
          response.schema ? [[status, response.schema]] : [],
        ),
      ),
    },
    async onRequest(request, reply) {
      // `/servers//snapshots` names no server: it is a path that no route takes.
      if (Object.values(request.params as object).includes('')) throw refusal(undefined);
      noteMediaType(request);
      if (version === 'v1') reply.header('link', `<${successor(request)}>; rel="successor-version"`);
      await gate.admit(request, reply, version);
    },
    preValidation: (request, reply) => gate.pass(request, reply, endpoint.selectsTenant),
    async handler(request, reply) {
      try {
        // A parameter that does nothing is refused: `?dry_run=true` must not deploy.
        if (endpoint.query === undefined) checkNoQuery(request.query);
        if (endpoint.method !== 'GET' && !endpoint.headers?.includes('If-Match')) refuseIfMatch(request);
        const answer = await handler(request.call!, request, reply);
        const { statusCode } = reply;
        const schema = tagged.has(statusCode) ? endpoint.responses[statusCode]!.schema : undefined;
        request.call!.changeablePart = changeablePart(schema, answer);
        if (endpoint.method === 'GET')
          requireMatch(request, () => (schema ? tagOf(reply, schema, answer) : null));
        return answer;
      } catch (error) {
        addRefusedBudget(reply, error);
        throw translateError(error);
      }
    },
  });
}

/** Empty on routes that are no endpoint. */
interface RouteConfig {
  taggedStatuses?: ReadonlySet<number>;
  maxAgeSeconds?: number;
}

/** The last step of every answer: its count, its quota headers, how long it may be kept. */
async function finishAnswer(
  deps: CustomerApiDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  const used = (await request.call?.counted) ?? null;
  if (reply.statusCode === 401) hideBudget(reply);
  else if (used !== null) {
    const limit = deps.metering.includedPerMonth;
    reply.header('x-api-quota-limit', limit);
    reply.header('x-api-quota-remaining', Math.max(0, limit - used));
    reply.header('x-api-quota-used', used);
  }
  reply.header('vary', 'Authorization, X-Tenant-Id, Accept, Accept-Encoding');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const { taggedStatuses: tagged, maxAgeSeconds } = request.routeOptions.config as RouteConfig;
  const isTagged = tagged?.has(reply.statusCode) === true && typeof payload === 'string';
  const tag =
    (reply.getHeader('etag') as string | undefined) ??
    (isTagged ? entityTag(payload, request.call?.changeablePart ?? '') : null);
  if (tag !== null) reply.header('etag', tag);
  const kept = maxAgeSeconds ? `private, max-age=${maxAgeSeconds}` : 'private, no-cache';
  reply.header('cache-control', isRead && tag !== null ? kept : 'no-store');
  if (!isRead || tag === null || !isKnown(request.headers['if-none-match'], tag))
    return compressAnswer(request, reply, payload);
  reply.code(304).removeHeader('content-type').removeHeader('content-length');
  return null;
}

/** A 401 says nothing of a key's numbers, also when the key was good at the start of the call. */
function hideBudget(reply: FastifyReply): void {
  for (const name of ['ratelimit', 'ratelimit-policy', 'x-tenant-id', 'preference-applied'])
    reply.removeHeader(name);
}

/** Statuses whose answer is a representation that a read would give, as the contract says. */
function taggedStatuses(endpoint: Endpoint): ReadonlySet<number> {
  const found = Object.entries(endpoint.responses).filter(([, response]) =>
    response.headers?.includes('ETag'),
  );
  return new Set(found.map(([status]) => Number(status)));
}

/** The same path in version 2; its query may hold what only the caller should see again. */
function successor(request: FastifyRequest): string {
  const path = request.url.split('?', 1)[0]!;
  return `${baseUrl(request)}${path.replace(/^\/api\/v1/, '/api/v2').replaceAll(/[<>"\s]/g, '')}`;
}

const versions = ['v1', 'v2'] as const;
/** What a caller may call its own request; anything else is not repeated. */
const clientName = /^[\x21-\x7e]{1,128}$/;
const exposed =
  'X-Request-Id, X-Client-Request-Id, RateLimit, RateLimit-Policy, Retry-After, X-Api-Quota-Limit, X-Api-Quota-Remaining, X-Api-Quota-Used, X-Tenant-Id, ETag, Link, Location, Idempotent-Replayed, Preference-Applied';

/** The headers of every answer below `/api/`, also of refusals. */
function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const name = request.headers['x-client-request-id'];
  if (typeof name === 'string' && clientName.test(name)) reply.header('x-client-request-id', name);
  // Without credentials: the key travels in a header that only the calling script can know.
  reply.header('access-control-allow-origin', '*');
  reply.header('access-control-expose-headers', exposed);
  reply.header('x-content-type-options', 'nosniff');
}

/** An endpoint's path as the router writes it. */
function routePath(version: Version, path: string): string {
  return `/api/${version}${path.replace(/\{(\w+)\}/g, ':$1')}`;
}

/** `OPTIONS` says what a path allows. */
function registerPreflights(api: FastifyInstance): void {
  for (const [url, methods] of methodsByPath()) {
    const allow = methods.join(', ');
    api.options(url, async (_request, reply) => {
      reply.header('allow', allow).header('access-control-allow-methods', allow);
      reply.header(
        'access-control-allow-headers',
        'Authorization, Content-Type, X-Tenant-Id, X-Client-Request-Id, If-Match, If-None-Match, Idempotency-Key, Prefer',
      );
      reply.header('access-control-max-age', '600');
      return reply.code(204).send();
    });
  }
}

/** Everything that no route takes; said before its body is read. */
function registerUnrouted(app: App): void {
  const known = [...methodsByPath()].map(([url, methods]) => ({
    pattern: new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}/?$`),
    allow: methods.join(', '),
  }));
  for (const version of versions) {
    app.register(
      async (scope) => {
        scope.addHook('onRequest', async (request, reply) => {
          addCommonHeaders(request as FastifyRequest, reply as unknown as FastifyReply);
          const path = request.url.split(/[?#]/, 1)[0]!;
          throw refusal(known.find(({ pattern }) => pattern.test(path))?.allow);
        });
        scope.setNotFoundHandler(async () => {});
      },
      { prefix: `/api/${version}` },
    );
  }
}

function refusal(allow: string | undefined): HttpError {
  if (allow === undefined)
    return new HttpError(404, { code: 'not_found', message: 'No page exists at this path.' });
  const message = `This path can't be used with that method. Allowed: ${allow}.`;
  return new HttpError(405, { code: 'method_not_allowed', message }, { allow });
}

function methodsByPath(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const endpoint of endpoints) {
    for (const version of endpoint.versions) {
      const url = routePath(version, endpoint.path);
      const read = endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method];
      found.set(url, [...(found.get(url) ?? ['OPTIONS']), ...read]);
    }
  }
  return found;
}
