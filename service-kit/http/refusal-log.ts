import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Reporter } from '#common/reporter/index.ts';

/** The error code of a request that was answered with one. */
export const refusalCodes = new WeakMap<FastifyRequest, string>();

const phrases: Readonly<Record<number, string>> = {
  401: 'not authenticated',
  403: 'refused by permission',
  421: 'host name not accepted',
  429: 'throttled',
};
const windowMs = 60_000;
const linesPerSource = 20;
const sourcesMax = 10_000;

/**
 * Logs who was refused, where and why: failed sign-ins and keys, missing permissions, foreign host names, throttling. Nothing of a body, a
 * cookie or a credential is in a line. A source gets so many lines a minute; what is left out is counted and told with
 * its next line, so that an attack does not fill the disk and is still seen.
 */
export function createRefusalLog(
  reporter: Reporter,
  nowMs: () => number = Date.now,
): (request: FastifyRequest, reply: FastifyReply) => void {
  const sources = new Map<string, { fromMs: number; lines: number; left: number }>();
  return (request, reply) => {
    const phrase = phrases[reply.statusCode];
    if (phrase === undefined) return;
    const now = nowMs();
    let source = sources.get(request.ip);
    if (!source || now - source.fromMs >= windowMs) {
      source = { fromMs: now, lines: 0, left: source?.left ?? 0 };
      sources.delete(request.ip);
      sources.set(request.ip, source);
      if (sources.size > sourcesMax) sources.delete(sources.keys().next().value!);
    }
    if (source.lines >= linesPerSource) {
      source.left += 1;
      return;
    }
    source.lines += 1;
    reporter.warn(phrase, {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      code: refusalCodes.get(request),
      address: request.ip,
      host: reply.statusCode === 421 ? request.headers.host?.slice(0, 253) : undefined,
      request_id: request.id,
      not_logged: source.left || undefined,
    });
    source.left = 0;
  };
}
