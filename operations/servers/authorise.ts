import { CodedError } from '#common/errors/index.ts';
import { type Actor, reachesTenant, requireWriter } from '#operations/accounts/index.ts';
import type { Scope } from '#operations/views/scope.ts';

/** The servers that this actor may see: a customer's own tenants, all for staff, none for other actors. */
export function scopeOf(actor: Actor): Scope {
  if (actor.kind === 'customer') return actor.tenantIds;
  return actor.kind === 'staff' || actor.kind === 'system' ? 'all' : [];
}

/** The same, narrowed to one tenant. */
export function scopeOfTenant(actor: Actor, tenantId: number): Scope {
  return reachesTenant(actor, tenantId) ? [tenantId] : [];
}

/** Throws unless the actor may change this tenant's servers. Another's tenant is as if it did not exist. */
export function requireWrite(actor: Actor, tenantId: number): void {
  if (!reachesTenant(actor, tenantId)) throw notFound();
  requireWriter(actor);
}

/** Who is noted as having asked for an action. */
export interface Requester {
  requestedByKey: string | null;
  requestedByPersonId: number | null;
}

export function requester(actor: Actor): Requester {
  return {
    requestedByKey: actor.kind === 'customer' ? actor.keyId : null,
    requestedByPersonId: actor.kind === 'customer' || actor.kind === 'staff' ? actor.personId : null,
  };
}

/** One answer for another's, a destroyed and a nonexistent server. */
export function notFound(): CodedError {
  return new CodedError('servers.not_found', 'There is no such server.');
}
