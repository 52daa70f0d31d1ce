import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createLeasedLoop, type LeasedLoop } from './leased-loop.ts';
import { ifHeld } from './under-lease.ts';

export interface ExpiryLoopOptions {
  /** Of the lease; programs that share a database server have different ones. */
  name: string;
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  /** Deletes expired rows, at most so many; returns how many. */
  deleteExpired(trx: Queryable, rowsMax: number): Promise<number>;
}

const batchRowsMax = 10_000;

/** Deletes expired rows once an hour, in batches, so that no transaction grows long. */
export function createExpiryLoop({ deleteExpired, ...options }: ExpiryLoopOptions): LeasedLoop {
  return createLeasedLoop({
    intervalMs: 3_600_000,
    ttlSeconds: 120,
    ...options,
    async run(lease, renew, signal) {
      for (let deleted = batchRowsMax; deleted === batchRowsMax && !signal.aborted; ) {
        if (!(await renew())) return;
        deleted = (await ifHeld(options.db(), lease, (trx) => deleteExpired(trx, batchRowsMax))) ?? 0;
      }
    },
  });
}
