/**
 * The audit trail of both server programs: who changed what, from where, with the state before and after.
 *
 * An operation calls `record(trx, actor, entry)` once, in its own transaction, after its change. The actor carries the
 * request's source address and id (`origin`), which the guards set. The database refuses to change entries, and to
 * delete them within a year. Reading is paged and streamed; customers read the entries of their own organization.
 */
export type { ActorKind, AuditActor, Traceable } from './actor.ts';
export { type AuditEntry, changedMembers, type StoredEntry } from './entry.ts';
export { readEntries, streamEntries } from './read-entries.ts';
export { record } from './record.ts';
export { type AuditFilter, deleteExpired } from './store.ts';
