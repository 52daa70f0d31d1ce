/** Brings hypervisors in line with what is stored: always the newest version, however many were queued. */

import type { Actor } from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, type HypervisorDriver } from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import { findOwnedServer } from '#operations/views/server-store.ts';
import type { Job, JobHandler } from '#service-kit/jobs/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { FirewallsDeps } from './index.ts';
import * as store from './store.ts';

const attemptsMax = 8;

/** Handlers by job kind. */
export function firewallJobs(deps: FirewallsDeps): Record<string, JobHandler> {
  return {
    'firewall.apply': {
      run: (job) => apply(deps, serverIdOf(job)),
      attemptsMax,
      async giveUp(job, error) {
        const serverId = serverIdOf(job);
        deps.reporter.error('a firewall could not be applied', { server: serverId, error });
        const firewall = await store.findFirewall(deps.db(), serverId);
        if (firewall !== null) await store.noteApplied(deps.db(), serverId, firewall.version, 'failed');
      },
    },
  };
}

async function apply(deps: FirewallsDeps, serverId: number): Promise<void> {
  for (;;) {
    const firewall = await store.findFirewall(deps.db(), serverId);
    const isThere = (await findOwnedServer(deps.db(), 'all', serverId)) !== null;
    const driver = await driverOf(deps, serverId);
    if (firewall === null || !isThere || driver === null) return;
    const { inboundPolicy, outboundPolicy, rules } = firewall;
    const plan = firewall.isEnabled ? { inboundPolicy, outboundPolicy, rules } : null;
    await driver.applyFirewall(guestName(serverId), plan);
    if (await noteApplied(deps, serverId, firewall.version)) return;
  }
}

/** False when there is a newer version. Each version is one change, however many jobs apply it. */
function noteApplied(deps: FirewallsDeps, serverId: number, version: number): Promise<boolean> {
  return inTransaction(deps.db(), async (tx) => {
    const noted = await store.noteApplied(tx, serverId, version, 'applied');
    if (noted?.isNews) {
      await noteServerChange(tx, serverId, 'firewall');
      await emit(tx, { type: 'firewall.applied', serverId });
    }
    return noted !== null;
  });
}

function serverIdOf(job: Job): number {
  return (job.payload as { server_id: number }).server_id;
}

/** Whose servers' firewalls the actor reaches, narrowed to one tenant where one is given. */
export function scopeOf(actor: Actor, tenantId: number | null): Scope {
  if (actor.kind === 'project') return [];
  const whole: Scope = actor.kind === 'customer' ? actor.tenantIds : 'all';
  if (tenantId === null) return whole;
  return whole === 'all' || whole.includes(tenantId) ? [tenantId] : [];
}

/** The hypervisor of a server; null for one without room on any node. */
export async function driverOf(deps: FirewallsDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}
