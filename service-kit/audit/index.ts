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
export { record } from './record.ts';
export { recorded } from './record-change.ts';
export { createAuditRetention } from './retention.ts';
export { type AuditTrail, createAuditTrail } from './send-audit.ts';
export { sentenceOf } from './sentence.ts';
export { deleteExpired as deleteExpiredEntries } from './store.ts';
