/** Where routes of the demo answer: in a demo world, on this machine alone. */
import type { FastifyRequest } from 'fastify';
import { staysOnMachine } from '#common/transport/index.ts';
import { HttpError, isLoopback } from '#service-kit/http/index.ts';
import { otherSiteFault } from '#service-kit/sessions/index.ts';

/** Whether the program has the demo world and listens on this machine alone. */
export function isLocalDemo({ isDemo, host }: { isDemo: boolean; host: string }): boolean {
  return isDemo && (host === 'localhost' || isLoopback(host));
}

/**
 * Throws unless the request comes from this machine, under a name that is always this machine's, and not from a page of another
 * site. `refusal` is for the person who asked.
 */
export function requireLocal(request: FastifyRequest, refusal: string): void {
  const isHere = isLoopback(request.ip) && staysOnMachine(`http://${request.host}`);
  const isChange = !['GET', 'HEAD'].includes(request.method);
  if (!isHere || (isChange && otherSiteFault(request) !== null))
    throw new HttpError(403, { code: 'forbidden', message: refusal });
}
