import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createExpiryLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type AuditActor, describeActor } from './actor.ts';
import { type AuditEntry, keepable } from './entry.ts';
import { deleteExpired, insertEntry } from './store.ts';

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

/**
 * Writes one entry of the audit trail in the transaction of the change: both are kept or neither is.
 *
 * Call it after the change, with what the operation knows. Members whose names say secret are never written. Throws
 * `TypeError` outside a transaction, because such an entry could outlive a change that failed.
 */
export async function record(trx: Queryable, actor: AuditActor, entry: AuditEntry): Promise<void> {
  if (!trx.isTransaction) throw new TypeError(`audit entry ${entry.operation} outside a transaction`);
  await insertEntry(trx, describeActor(actor), actor.origin ?? null, {
    operation: entry.operation,
    subjectKind: entry.subject.kind,
    subjectId: String(entry.subject.id),
    subjectName: entry.subject.name ?? null,
    organizationId: entry.organizationId ?? null,
    tenantId: entry.tenantId ?? null,
    before: toJson(entry.before),
    after: toJson(entry.after),
  });
}

function toJson(state: object | null | undefined): string | null {
  return state === null || state === undefined ? null : JSON.stringify(keepable(state));
}

/**
 * Runs a change and writes its entry in one transaction, for operations that need no transaction of their own. A change
 * that answers `false` or `null` changed nothing and leaves no entry.
 */
export function recorded<Result>(
  db: Queryable,
  actor: AuditActor,
  entry: AuditEntry | ((result: NoInfer<Exclude<Result, null | false>>) => AuditEntry),
  change: (trx: Queryable) => Promise<Result>,
): Promise<Result> {
  return inTransaction(db, async (trx) => {
    const result = await change(trx);
    if (result !== false && result !== null)
      await record(
        trx,
        actor,
        typeof entry === 'function' ? entry(result as Exclude<Result, null | false>) : entry,
      );
    return result;
  });
}
