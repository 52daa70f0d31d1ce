import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { listOutdated, storeCounts } from './store.ts';

const addressesMax = 500;

interface CountLoopDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}

/**
 * Stores new counts of addresses where time has changed them. A reader counts such an address itself, so the loop only makes
 * reading faster.
 */
export function createCountLoop({ db, clock, reporter }: CountLoopDeps): LeasedLoop {
  return createLeasedLoop({
    ...{ name: 'operations-finding-counts', intervalMs: 60_000, ttlSeconds: 120 },
    ...{ db, clock, reporter },
    async run(lease, renew, signal) {
      for (let found = addressesMax; found === addressesMax && !signal.aborted; ) {
        if (!(await renew())) return;
        const ids = await listOutdated(db(), addressesMax);
        await ifHeld(db(), lease, (tx) => storeCounts(tx, ids));
        found = ids.length;
      }
    },
  });
}
