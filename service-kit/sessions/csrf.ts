import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { unmaskToken } from './token-mask.ts';

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
