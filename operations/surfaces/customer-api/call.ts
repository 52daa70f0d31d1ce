import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EndpointId } from '#contracts/customer-api/index.ts';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { Principal } from '#operations/api-keys/index.ts';
import type { ReachableTenant } from '#operations/views/key-store.ts';
import { HttpError } from '#service-kit/http/index.ts';

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

/** Some of the API's endpoints. */
export type Handlers = Partial<Record<EndpointId, Handler>>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the call's key has been accepted. */
    call: Call | null;
    /** The body is declared as something other than JSON. */
    hasForeignBody: boolean;
  }
}

interface Selection {
  tenant: ReachableTenant;
  /** What the call is told after it has been counted, on the default workspace. */
  fault: HttpError | null;
}

/**
 * The workspace that a v2 call names in its query, its JSON body or `X-Tenant-Id`; the default one where it names none.
 *
 * Two that differ are an error and not a precedence. One that the key can't reach is as if it did not exist.
 */
export function selectTenant(request: FastifyRequest, tenants: readonly ReachableTenant[]): Selection {
  const fallback = tenants[0]!;
  const named = selectors(request);
  if (named.length === 0) return { tenant: fallback, fault: null };
  const found = new Set(
    named.map((selector) => tenants.find((one) => String(one.id) === selector || one.slug === selector)),
  );
  if (found.size > 1 || (found.has(undefined) && new Set(named).size > 1)) {
    const message = 'The query, the body and X-Tenant-Id name different workspaces. Name one.';
    const fault = new HttpError(400, { code: 'bad_request', reason: 'tenant_conflict', message });
    return { tenant: fallback, fault };
  }
  const [tenant] = found;
  if (tenant === undefined) return { tenant: fallback, fault: notFound() };
  return { tenant, fault: null };
}

/** The one 404 of this API: for another's, a destroyed and a nonexistent thing alike. */
export function notFound(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'There is nothing here by that name or id.' });
}

function selectors(request: FastifyRequest): string[] {
  const inQuery = (request.query as Record<string, unknown>).tenant;
  const inBody = (request.body as Record<string, unknown> | null | undefined)?.tenant;
  const given = [inQuery, inBody, request.headers['x-tenant-id']].flat();
  // An empty one is a variable that was not set: it reaches nothing, and never the default workspace.
  return given.filter((value) => typeof value === 'string' || typeof value === 'number').map(String);
}
