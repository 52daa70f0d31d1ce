import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type AuditActor, describeActor } from './actor.ts';
import { type AuditEntry, keepable } from './entry.ts';
import { insertEntry } from './store.ts';

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
