/**
 * Firewalls: the rules of customers for their servers' public network interfaces, and their state at the hypervisor.
 *
 * The portal and the API change it by the same operation. Each change is a new version, applied by a job; `enabled` is
 * true only where a hypervisor really filters. The platform's rules, which cannot be edited, are shown as well.
 */

import type { Reporter } from '#common/reporter/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Hypervisors, ImplicitRule } from '#operations/hypervisors/index.ts';
import { findOwnedServer } from '#operations/views/server-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { changeFirewall, type FirewallChange, type FirewallChangeOptions } from './change-firewall.ts';
import { type Firewall, fingerprintOf, untouchedFirewall } from './firewall.ts';
import { driverOf, firewallJobs, scopeOf } from './jobs.ts';
import * as store from './store.ts';

export type { FirewallChange } from './change-firewall.ts';
export { type Direction, markOf, type Rule, type StoredRule } from './firewall.ts';

export interface EffectiveFirewall extends Firewall {
  fingerprint: string;
  /** False where the hypervisor of the server filters nothing. */
  isSupported: boolean;
  /** Platform rules that are in force before the customer's. */
  implicitRules: readonly ImplicitRule[];
}

export type Firewalls = ReturnType<typeof createFirewalls>;

export function createFirewalls(deps: FirewallsDeps) {
  return {
    /** What it does beside the calls. */
    work: { jobHandlers: firewallJobs(deps) } satisfies FeatureWork,
    /** Null for a server that is not there or another's. */
    async readFirewall(
      actor: Actor,
      tenantId: number | null,
      serverId: number,
    ): Promise<EffectiveFirewall | null> {
      if ((await findOwnedServer(deps.db(), scopeOf(actor, tenantId), serverId)) === null) return null;
      const firewall = (await store.findFirewall(deps.db(), serverId)) ?? untouchedFirewall(serverId);
      const driver = await driverOf(deps, serverId);
      return {
        ...firewall,
        fingerprint: fingerprintOf(firewall),
        isSupported: driver?.capabilities.includes('firewall') ?? false,
        implicitRules: driver?.implicitRules ?? [],
      };
    },
    /**
     * Throws `firewall.not_found`, `firewall.changed`, `firewall.invalid`, `firewall.unsupported`; an edit also
     * `firewall.rule_changed` and `firewall.rule_removed`.
     */
    changeFirewall: (
      actor: Actor,
      serverId: number,
      version: number | null,
      change: FirewallChange,
      options?: FirewallChangeOptions,
    ) => changeFirewall(deps, actor, serverId, version, change, options),
  };
}

/** What firewalls need from the rest of the program. */
export interface FirewallsDeps {
  db: () => Queryable;
  hypervisors: Hypervisors;
  reporter: Reporter;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
