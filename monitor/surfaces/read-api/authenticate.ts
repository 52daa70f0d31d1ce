/** Admits a read token before anything else is read, and counts its requests. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ReadTokens } from '#monitor/read-tokens/index.ts';
import { readBearer } from '#service-kit/credentials/index.ts';
import { HttpError, onClosed } from '#service-kit/http/index.ts';

const sites = new WeakMap<FastifyRequest, number>();

export function authenticateWith(tokens: Pick<ReadTokens, 'authenticate' | 'admit'>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const text = readBearer(request.raw.rawHeaders);
    const token = text === null ? null : await tokens.authenticate(text);
    if (!token)
      throw new HttpError(
        401,
        {
          code: 'unauthenticated',
          message:
            'Send a read token of a site as “Authorization: Bearer svcread_…”. An operator makes one in the settings of the site.',
        },
        { 'www-authenticate': 'Bearer' },
      );
    const admission = await tokens.admit(token.id);
    if (!admission.isAdmitted)
      throw new HttpError(
        429,
        { code: 'rate_limited', message: admission.why, retryable: true },
        { 'retry-after': String(admission.retryAfterSeconds) },
      );
    onClosed(reply, () => void admission.end());
    sites.set(request, token.siteId);
  };
}

/** The site of the request's token. */
export const siteOf = (request: FastifyRequest): number => sites.get(request)!;
