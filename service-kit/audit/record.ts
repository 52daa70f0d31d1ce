import type { Queryable } from '#service-kit/postgres/index.ts';
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
