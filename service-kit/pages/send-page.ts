/**
 * How a page leaves the server: with its type, never cached, and under a policy that runs no inline script or style.
 *
 * A page that renews itself asks with `x-refresh` and the tag of what it has; an equal page is answered by 304 alone.
 */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Html } from './html.ts';
import { safeHref } from './link.ts';

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

/** The same, for a page whose script shows images that it has as text. */
export const inlineImagePolicy = CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' data:");

/** The headers of every page; who sends a page without `sendPage` sets them too. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** True for a request that a page makes by itself to renew its parts: no person has done anything. */
export function isRefresh(request: FastifyRequest): boolean {
  return request.method === 'GET' && request.headers['x-refresh'] !== undefined;
}

/** Sends a page; returns the reply, for `return sendPage(reply, …)` in a route. */
export function sendPage(reply: FastifyReply, page: Html, status = 200, policy = CONTENT_SECURITY_POLICY) {
  // Names of hosts and strangers stand in pages: none of them turns the direction of what follows it.
  const text = String(page).replace(/[\u202a-\u202e\u2066-\u2069]/g, '');
  reply
    .code(status)
    .headers({ ...PAGE_HEADERS, 'content-security-policy': policy })
    .type('text/html; charset=utf-8');
  if (status === 200 && isRefresh(reply.request)) {
    const tag = tagOf(text);
    reply.header('etag', tag);
    if (reply.request.headers['if-none-match'] === tag) return reply.code(304).send();
  }
  return reply.send(text);
}

/** The same for the same content: tokens of forms are masked anew in each page, and ages grow in the browser. */
function tagOf(page: string): string {
  const plain = page
    .replace(/(name="csrf_token" value=")[^"]*/g, '$1')
    .replace(/ data-now="\d+"([^>]*)>[^<]*</g, '$1><');
  return `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
}

// What a surface's search answers to the command palette, as JSON.

/** One thing that was found. */
export interface PaletteHit {
  /** The heading that it stands under: "Servers", "Addresses". */
  kind: string;
  text: string;
  /** What tells it from others of its name: its owner, its state. */
  detail: string;
  href: string;
}

/** Hits of each kind; more are a matter for the list's own search. */
export const PALETTE_HITS_MAX = 6;

/** Longer texts find nothing more. */
export const PALETTE_TEXT_MAX = 100;

/** Sends the hits in their order. */
export function sendPaletteHits(reply: FastifyReply, hits: readonly PaletteHit[]): FastifyReply {
  const checked = hits.map((hit) => ({ ...hit, href: safeHref(hit.href) }));
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(checked));
}
