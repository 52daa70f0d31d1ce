/**
 * How a page leaves the server: with its type, never cached, and under a policy that runs no inline script or style.
 */
import type { FastifyReply } from 'fastify';
import type { Html } from './html.ts';

/** Scripts, styles and requests only from and to this server; forms post to it only; framing is forbidden. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of every page; who sends a page without `sendPage` sets them too. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** Sends a page; returns the reply, for `return sendPage(reply, …)` in a route. */
export function sendPage(reply: FastifyReply, page: Html, status = 200): FastifyReply {
  return reply.code(status).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(String(page));
}
