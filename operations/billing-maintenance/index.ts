/**
 * The periodic work of billing, in one tick: hours of servers and of snapshots, requests above the free quota, traffic beyond the pool, and suspensions.
 *
 * It is the only place that suspends for debt (API-3.6) and that charges overage (API-8.6): no request is ever refused
 * for going over. Every charge has a reference that the ledger takes once, so ticks may be repeated, overlap or die.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { endDebtSuspension, suspendForDebt } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import { lockFreeBalances } from '#operations/billing/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import { chargeServerHours, type Servers } from '#operations/servers/index.ts';
import { listDebtors, listSettledDebtors } from '#operations/views/tenant-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { chargeBandwidth } from './charge-bandwidth.ts';
import { chargeOverage } from './charge-overage.ts';

export { chargeOverage } from './charge-overage.ts';

interface MaintenanceLoopDeps extends MaintenanceDeps {
  clock: Clock;
  reporter: Reporter;
}

export interface MaintenanceResult {
  hours: number;
  snapshots: number;
  overages: number;
  /** Months of accounts that were charged for traffic. */
  bandwidth: number;
  suspended: number;
  reactivated: number;
}

/** One tick. */
export async function maintainBilling(deps: MaintenanceDeps): Promise<MaintenanceResult> {
  const hours = await chargeServerHours(deps.db());
  const snapshots = await deps.servers.chargeSnapshots();
  const overages = await chargeOverage(deps);
  const bandwidth = await chargeBandwidth(deps);
  // Last, so that a debt of this very tick counts.
  return { hours, snapshots, overages, bandwidth, ...(await settleSuspensions(deps)) };
}

/** The feature is work alone: one tick a minute, on one of the replicas. */
export function createBillingMaintenance(deps: MaintenanceLoopDeps): { work: FeatureWork } {
  return { work: { parts: [createMaintenanceLoop(deps)] } };
}

function createMaintenanceLoop(deps: MaintenanceLoopDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.billing_maintenance',
    intervalMs: 60_000,
    ttlSeconds: 120,
    ...deps,
    async run() {
      const result = await maintainBilling(deps);
      if (Object.values(result).some((count) => count > 0))
        deps.reporter.debug('billing maintained', { ...result });
    },
  });
}

/** What billing maintenance needs from the rest of the program. */
export interface MaintenanceDeps {
  db: () => Queryable;
  metering: Metering;
  bandwidth: Bandwidth;
  servers: Pick<Servers, 'chargeSnapshots'>;
}

/**
 * Suspends active accounts whose credit is negative, and takes back such suspensions where it no longer is. What an
 * operator suspended stays suspended. The balance is looked at again with its row locked, so a payment that arrives at
 * the same moment is not overlooked; an account that is locked by another transaction waits for the next tick.
 */
async function settleSuspensions(
  deps: Pick<MaintenanceDeps, 'db'>,
): Promise<{ suspended: number; reactivated: number }> {
  const settle = async (
    tenantIds: readonly number[],
    isDue: (balance: number) => boolean,
    change: Change,
  ) => {
    let changed = 0;
    for (const tenantId of tenantIds) {
      const isChanged = await inTransaction(deps.db(), async (tx) => {
        const balance = (await lockFreeBalances(tx, [tenantId])).get(tenantId);
        return balance !== undefined && isDue(balance) && change(tx, tenantId);
      });
      if (isChanged) changed += 1;
    }
    return changed;
  };
  const suspended = await settle(await listDebtors(deps.db()), (balance) => balance < 0, suspendForDebt);
  const settled = await listSettledDebtors(deps.db());
  const reactivated = await settle(settled, (balance) => balance >= 0, endDebtSuspension);
  return { suspended, reactivated };
}

type Change = (tx: Queryable, tenantId: number) => Promise<boolean>;
