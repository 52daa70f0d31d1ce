/**
 * What is answered below `/api/v1` and `/api/v2` without being a call: `OPTIONS`, the 405 of a path that does not take a
 * method, the 404 of a path that there is not. None of it asks for a key, and none is counted.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, endpoints } from '#contracts/customer-api/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { Version } from './call.ts';

const versions = ['v1', 'v2'] as const;
/** What a caller may call its own request; anything else is not repeated. */
const clientName = /^[\x21-\x7e]{1,128}$/;
const exposed =
  'X-Request-Id, X-Client-Request-Id, RateLimit, RateLimit-Policy, Retry-After, X-Api-Quota-Limit, X-Api-Quota-Remaining, X-Api-Quota-Used, X-Tenant-Id, ETag, Link, Location, Idempotent-Replayed, Preference-Applied';

/** The headers of every answer below `/api/`, also of refusals. */
export function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const name = request.headers['x-client-request-id'];
  if (typeof name === 'string' && clientName.test(name)) reply.header('x-client-request-id', name);
  // Without credentials: the key travels in a header that only the calling script can know.
  reply.header('access-control-allow-origin', '*');
  reply.header('access-control-expose-headers', exposed);
  reply.header('x-content-type-options', 'nosniff');
}

/** An endpoint's path as the router writes it. */
export function routePath(version: Version, path: string): string {
  return `/api/${version}${path.replace(/\{(\w+)\}/g, ':$1')}`;
}

/** `OPTIONS` says what a path allows. */
export function registerPreflights(api: FastifyInstance): void {
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
export function registerUnrouted(app: App): void {
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
  for (const endpoint of endpoints as readonly Endpoint[]) {
    for (const version of endpoint.versions) {
      const url = routePath(version, endpoint.path);
      const read = endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method];
      found.set(url, [...(found.get(url) ?? ['OPTIONS']), ...read]);
    }
  }
  return found;
}
