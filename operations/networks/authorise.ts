import { type Actor, forbidden } from '#operations/accounts/index.ts';
import type { Scope } from '#operations/views/index.ts';

export type { Scope } from '#operations/views/index.ts';

/** What the actor reaches: a customer their own tenants, staff and the program everything, a project nothing. */
export function scopeOf(actor: Actor, tenantId: number | null): Scope {
  const whole: Scope =
    actor.kind === 'customer'
      ? actor.tenantIds
      : actor.kind === 'staff' || actor.kind === 'system'
        ? 'all'
        : [];
  if (tenantId === null) return whole;
  return whole === 'all' || whole.includes(tenantId) ? [tenantId] : [];
}

/** Throws for read keys and for support. */
export function requireWriter(actor: Actor): void {
  if (actor.kind === 'customer' && !actor.canWrite) throw forbidden('This key may only read.');
  if (actor.kind === 'staff' && actor.role !== 'operator') throw forbidden('Support staff may only read.');
  if (actor.kind === 'project') throw forbidden('A project may not change networks.');
}
