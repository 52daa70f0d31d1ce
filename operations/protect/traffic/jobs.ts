import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLeasedLoop, holdsTerm, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';

export interface TrafficRetentionDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}

/** Minutes are kept for three months (the specification's retention table). */
const keptFor = '3 months';
const batchRowsMax = 10_000;

/** Deletes expired minutes once an hour, in batches, so that no transaction grows long. */
export function createTrafficRetention(deps: TrafficRetentionDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations-traffic-retention',
    intervalMs: 3_600_000,
    ttlSeconds: 120,
    ...deps,
    async run(lease, renew, signal) {
      for (let deleted = batchRowsMax; deleted === batchRowsMax && !signal.aborted; ) {
        if (!(await renew())) return;
        deleted = await deps
          .db()
          .transaction()
          .execute(async (transaction) =>
            (await holdsTerm(transaction, lease.name, lease.term))
              ? deleteExpired(transaction, keptFor, batchRowsMax)
              : 0,
          );
      }
    },
  });
}
