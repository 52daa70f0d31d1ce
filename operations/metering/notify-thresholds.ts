import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { emit } from '#operations/events/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const thresholds = [50, 80, 100] as const;
const accountsMax = 500;

/**
 * Every minute: tells accounts that have used half, 80 % or all of this month's free requests, each share once.
 *
 * Calls do not check thresholds: a call must not wait for a notification.
 */
export function createUsageThresholdLoop(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  includedPerMonth: number;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'metering.thresholds',
    intervalMs: 60_000,
    ttlSeconds: 50,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(_lease, renew, signal) {
      if (deps.includedPerMonth === 0) return;
      while (!signal.aborted && (await tellSome(deps.db(), deps.includedPerMonth)) === accountsMax)
        if (!(await renew())) return;
    },
  });
}

/** The mark moves in the transaction of the events, so none is told twice or forgotten. */
async function tellSome(db: Queryable, includedPerMonth: number): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const crossed = await store.lockCrossedMonths(tx, { includedPerMonth, thresholds, limit: accountsMax });
    for (const { tenantId, period, toldPercent, percent } of crossed) {
      for (const threshold of thresholds)
        if (threshold > toldPercent && threshold <= percent)
          await emit(tx, { type: 'usage.threshold', tenantId, period, percent: threshold });
      await store.noteTold(tx, tenantId, period, percent);
    }
    return crossed.length;
  });
}
