/**
 * Masks the token of forms, so that it is never twice the same text in pages.
 *
 * The size of a compressed page tells whether a text that a stranger chose stands in it a second time (BREACH). A token
 * under a new random mask has nothing in common with the one of the page before.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';

/** Between mask and masked token; no token has it. */
const separator = '.';

/** A random mask and the token under it, as text for a form. */
export function maskToken(token: string): string {
  const bytes = Buffer.from(token);
  const mask = randomBytes(bytes.length);
  return `${mask.toString('base64url')}${separator}${xor(bytes, mask).toString('base64url')}`;
}

/** The token out of `maskToken`; a text that is not masked is returned as it is. */
export function unmaskToken(given: string): string {
  const [mask, masked, rest] = given.split(separator);
  if (mask === undefined || masked === undefined || rest !== undefined) return given;
  const [a, b] = [Buffer.from(mask, 'base64url'), Buffer.from(masked, 'base64url')];
  return a.length === b.length ? xor(a, b).toString() : given;
}

function xor(a: Buffer, b: Buffer): Buffer {
  return Buffer.from(a.map((byte, index) => byte ^ b[index]!));
}

/**
 * Why an unsafe request must be refused, or null when it may act: it has to come from a page of ours and to carry the
 * session's token, masked or not, in the field `csrf_token` or the header `X-CSRF-Token`.
 */
export function csrfFault(request: FastifyRequest, expectedToken: string): string | null {
  const fault = otherSiteFault(request);
  if (fault !== null) return fault;
  const body = request.body as Record<string, unknown> | null | undefined;
  const given = body?.csrf_token ?? request.headers['x-csrf-token'];
  if (typeof given !== 'string') return 'the form carries no token';
  const a = Buffer.from(unmaskToken(given));
  const b = Buffer.from(expectedToken);
  return a.length === b.length && timingSafeEqual(a, b) ? null : 'the form is out of date';
}

/** The half of it that needs no session, for signing in: why a request can't come from a page of ours, or null. */
export function otherSiteFault(request: FastifyRequest): string | null {
  const fault = 'the request came from another site';
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' ? null : fault;
  // Old browsers send no Sec-Fetch-Site; their Origin must then be ours.
  const origin = request.headers.origin;
  return origin !== undefined && URL.parse(origin)?.host !== request.headers.host ? fault : null;
}
