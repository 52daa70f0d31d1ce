import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createExpiryLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';

/**
 * The audit trail of both server programs: who changed what, from where, with the state before and after.
 *
 * An operation calls `record(trx, actor, entry)` once, in its own transaction, after its change. The actor carries the
 * request's source address and id (`origin`), which the guards set. The database refuses to change entries, and to
 * delete them within a year. Reading is paged and streamed; customers read the entries of their own organization.
 */
export type { AuditActor, Traceable } from './actor.ts';
export { AuditQuery, auditTable, readAuditFilter } from './audit.page.ts';
export { type AuditEntry, changedMembers, type StoredEntry } from './entry.ts';
export { record, recorded } from './record.ts';
export { type AuditTrail, createAuditTrail } from './send-audit.ts';
export { sentenceOf } from './sentence.ts';
export { deleteExpired as deleteExpiredEntries } from './store.ts';

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
