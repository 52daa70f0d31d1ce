/** Whose firewalls an actor reaches, and which hypervisor has to know about one. */
import type { Actor } from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import type { HypervisorDriver } from '#operations/hypervisors/index.ts';
import type { FirewallsDeps } from './deps.ts';
import type * as store from './store.ts';

/** Whose servers' firewalls the actor reaches, narrowed to one tenant where one is given. */
export function scopeOf(actor: Actor, tenantId: number | null): store.Scope {
  if (actor.kind === 'project') return [];
  const whole: store.Scope = actor.kind === 'customer' ? actor.tenantIds : 'all';
  if (tenantId === null) return whole;
  return whole === 'all' || whole.includes(tenantId) ? [tenantId] : [];
}

/** The hypervisor of a server; null for one without room on any node. */
export async function driverOf(deps: FirewallsDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}
