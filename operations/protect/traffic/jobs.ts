import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { kept } from '#contracts/retention.ts';
import { createExpiryLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';
import { deleteExpiredSums } from './sum-store.ts';

export interface TrafficRetentionDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}

/** Deletes expired minutes and sums. */
export function createTrafficRetention(deps: TrafficRetentionDeps): LeasedLoop {
  return createExpiryLoop({
    name: 'operations-traffic-retention',
    ...deps,
    deleteExpired: async (trx, rowsMax) =>
      Math.max(
        await deleteExpired(trx, kept.traffic, rowsMax),
        await deleteExpiredSums(trx, kept.traffic, rowsMax),
      ),
  });
}
