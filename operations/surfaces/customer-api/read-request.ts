/** What handlers read of a request in the same way. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Call } from './call.ts';
import { notFound } from './select-tenant.ts';

/** The body as an object; v1 knows no `tenant` and ignores one, whatever it is. */
export function bodyOf(call: Call, request: FastifyRequest): unknown {
  const body = request.body ?? {};
  if (call.version !== 'v1' || typeof body !== 'object' || Array.isArray(body)) return body;
  const { tenant: _, ...rest } = body as Record<string, unknown>;
  return rest;
}

/** An id of the path. What can't be an id is an id that nothing has. */
export function idOf(request: FastifyRequest, name = 'id'): number {
  const text = (request.params as Record<string, string>)[name] ?? '';
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw notFound();
  return id;
}

/** Adds to what `Link` says already. */
export function addLink(reply: FastifyReply, link: string): void {
  const before = reply.getHeader('link');
  reply.header('link', before === undefined ? link : `${String(before)}, ${link}`);
}

/** The request's own address with another cursor; filters stay as they were. */
export function nextPage(request: FastifyRequest, cursor: string): string {
  const url = new URL(request.url, 'http://here');
  url.searchParams.set('cursor', cursor);
  return `${url.pathname}${url.search}`;
}
