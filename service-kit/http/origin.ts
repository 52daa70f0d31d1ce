import type { FastifyRequest } from 'fastify';

/** From where a request came, for the audit trail and the log. */
export interface RequestOrigin {
  /** The client's address; behind a trusted proxy the one that the proxy names. */
  readonly address: string;
  readonly requestId: string;
}

/** The origin of this request; guards put it on the actor that they make. */
export function originOf(request: Pick<FastifyRequest, 'ip' | 'id'>): RequestOrigin {
  return { address: request.ip, requestId: request.id };
}
