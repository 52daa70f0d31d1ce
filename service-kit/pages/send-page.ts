/**
 * How a page leaves the server: with its type, never cached, and under a policy that runs no inline script or style.
 */
import type { FastifyReply } from 'fastify';
import type { Html } from './html.ts';

/** Only files of this server run, style or are asked; forms post here alone; nobody frames us. */
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

/** Sends a page; returns the reply, for `return sendPage(reply, …)` in a route. */
export function sendPage(reply: FastifyReply, page: Html, status = 200): FastifyReply {
  return reply
    .code(status)
    .header('content-security-policy', CONTENT_SECURITY_POLICY)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'same-origin')
    .header('cache-control', 'no-store')
    .type('text/html; charset=utf-8')
    .send(String(page));
}
