import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createExpiryLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';

/** Deletes entries that are older than a year. */
export function createAuditRetention(deps: {
  /** Of the lease; programs that share a database server have different ones. */
  name: string;
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createExpiryLoop({ ...deps, deleteExpired });
}
