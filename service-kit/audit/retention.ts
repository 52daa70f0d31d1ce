import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLeasedLoop, holdsTerm, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';

const batchRowsMax = 10_000;

/** Deletes entries that are older than a year, once an hour, in batches, so that no transaction grows long. */
export function createAuditRetention(deps: {
  /** Of the lease; programs that share a database server have different ones. */
  name: string;
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    intervalMs: 3_600_000,
    ttlSeconds: 120,
    ...deps,
    async run(lease, renew, signal) {
      for (let deleted = batchRowsMax; deleted === batchRowsMax && !signal.aborted; ) {
        if (!(await renew())) return;
        deleted = await deps
          .db()
          .transaction()
          .execute(async (trx) =>
            (await holdsTerm(trx, lease.name, lease.term)) ? deleteExpired(trx, batchRowsMax) : 0,
          );
      }
    },
  });
}
