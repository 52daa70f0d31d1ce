import type { FastifyReply, FastifyRequest } from 'fastify';

/** The longest that one call waits, in seconds. */
export const waitSecondsMax = 30;

/** How long the caller would like to wait (`Prefer: wait=20`, RFC 7240), bounded; 0 where it says nothing. */
export function readWait(request: FastifyRequest, reply: FastifyReply): number {
  const text = [request.headers.prefer].flat().join(',');
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?=$|[,;])/i.exec(text);
  if (!match) return 0;
  const seconds = Math.min(Number(match[1]), waitSecondsMax);
  reply.header('preference-applied', `wait=${seconds}`);
  return seconds;
}

/** Aborted when the caller hangs up: nobody waits for nobody. */
export function callerSignal(request: FastifyRequest): AbortSignal {
  const gone = new AbortController();
  request.raw.socket.once('close', () => gone.abort());
  return gone.signal;
}
