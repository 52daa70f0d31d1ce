import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { Principal } from '#operations/api-keys/index.ts';
import type { ReachableTenant } from '#operations/views/index.ts';

export type Version = 'v1' | 'v2';

/** One authenticated call. Made from the key alone: cookies and sessions are never looked at (API-1.4, API-5.6). */
export interface Call {
  version: Version;
  principal: Principal;
  actor: CustomerActor;
  /** The workspace that the call acts on and is counted for. */
  tenant: ReachableTenant;
  /** What is left of the key's requests per minute, this call taken off. */
  budgetRemaining: number;
  /** The call's number in its account's month; null while it is not to be counted, or when that failed. */
  counted: Promise<number | null> | null;
  /** The first part of the answer's tag. */
  changeablePart: string;
  /** Throws what a new call with this key for this workspace would be refused with. For calls that take long. */
  authenticateAgain(): Promise<void>;
}

export type Handler = (call: Call, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the call's key has been accepted. */
    call: Call | null;
    /** The body is declared as something other than JSON. */
    hasForeignBody: boolean;
  }
}
