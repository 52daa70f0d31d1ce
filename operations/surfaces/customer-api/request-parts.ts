/** What the handlers read of a request in the same way. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError } from '#service-kit/http/index.ts';
import type { Call } from './call.ts';
import { notFound } from './select-tenant.ts';

/** The body as an object; v1 has no `tenant` field and ignores any value of it. */
export function bodyOf(call: Call, request: FastifyRequest): unknown {
  // `null` is a body, and none that fits; only an absent one stands for an empty object.
  const body = request.body === undefined ? {} : request.body;
  if (call.version !== 'v1' || typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { tenant: _, ...rest } = body as Record<string, unknown>;
  return rest;
}

/** The id in the path; what can't be an id is an id that nothing has. */
export function idOf(request: FastifyRequest, name = 'id'): number {
  const text = (request.params as Record<string, string>)[name] ?? '';
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw notFound();
  return id;
}

/** Adds the next page to what `Link` says already; the request's filters stay as they were. */
export function linkNextPage(request: FastifyRequest, reply: FastifyReply, cursor: string): void {
  const url = new URL(request.url, 'http://here');
  url.searchParams.set('cursor', cursor);
  const link = `<${url.pathname}${url.search}>; rel="next"`;
  const before = reply.getHeader('link');
  reply.header('link', before === undefined ? link : `${String(before)}, ${link}`);
}

/** Of a list that is always whole: its one page. */
export function onePage(count: number) {
  return { limit: Math.max(200, count), total: count, has_more: false, next_cursor: null };
}

/** The 400 for a cursor that this list has not given out. */
export function invalidCursor(): HttpError {
  return new HttpError(400, {
    code: 'bad_request',
    reason: 'invalid_cursor',
    message: 'The cursor is not one of this list. Start again without it.',
  });
}
