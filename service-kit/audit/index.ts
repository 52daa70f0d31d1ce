import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { createExpiryLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import { type DataField, isoTime, tableCsv, tableValues } from '#service-kit/pages/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type AuditQuery, auditRowsShown } from './audit.page.ts';
import { type AuditActor, type AuditEntry, describeActor, keepable, type StoredEntry } from './entry.ts';
import { type AuditFilter, deleteExpired, insertEntry, listEntries } from './store.ts';

export { AuditQuery, auditTable, readAuditFilter } from './audit.page.ts';
/**
 * The audit trail of both server programs: who changed what, from where, with the state before and after.
 *
 * An operation calls `record(trx, actor, entry)` once, in its own transaction, after its change. The actor carries the
 * request's source address and id (`origin`), which the guards set. The database refuses to change entries, and to
 * delete them within a year. Reading is paged and streamed; customers read the entries of their own organization.
 */
export type { AuditActor, Traceable } from './entry.ts';
export { type AuditEntry, changedMembers, type StoredEntry, sentenceOf } from './entry.ts';
export { deleteExpired as deleteExpiredEntries } from './store.ts';

/** Deletes entries that are older than a year. */
export function createAuditRetention(
  deps: LoopDeps & {
    /** Of the lease; programs that share a database server have different ones. */
    name: string;
  },
): LeasedLoop {
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

/** The trail as a surface reads it: pages, and files of everything that fits. */
export type AuditTrail = ReturnType<typeof createAuditTrail>;

export function createAuditTrail(deps: { db: () => Queryable }) {
  return {
    page: (filter: AuditFilter, query: AuditQuery) =>
      readEntries(deps.db(), filter, {
        before: query.before ? Number(query.before) : null,
        limit: auditRowsShown,
      }),
    /** Answers with a file, streamed; `change` is applied to every entry first. */
    sendFile(
      reply: FastifyReply,
      filter: AuditFilter,
      format: 'csv' | 'json',
      change: (entry: StoredEntry) => StoredEntry = (entry) => entry,
    ): FastifyReply {
      async function* changed() {
        for await (const batch of streamEntries(deps.db(), filter)) yield batch.map(change);
      }
      return reply
        .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8')
        .headers({
          'content-disposition': `attachment; filename="audit-trail.${format}"`,
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
        })
        .send(exportEntries(changed(), format));
    },
  };
}

const fields: readonly DataField<StoredEntry>[] = [
  { field: 'id', value: (entry) => entry.id },
  { field: 'occurred_at', value: (entry) => isoTime(entry.occurredAtMs) },
  { field: 'operation', value: (entry) => entry.operation },
  { field: 'actor_kind', value: (entry) => entry.actorKind },
  { field: 'actor_id', value: (entry) => entry.actorId },
  { field: 'actor_name', value: (entry) => entry.actorName },
  { field: 'person_id', value: (entry) => entry.personId },
  { field: 'source_address', value: (entry) => entry.sourceAddress },
  { field: 'request_id', value: (entry) => entry.requestId },
  { field: 'subject_kind', value: (entry) => entry.subjectKind },
  { field: 'subject_id', value: (entry) => entry.subjectId },
  { field: 'subject_name', value: (entry) => entry.subjectName },
  { field: 'organization_id', value: (entry) => entry.organizationId },
  { field: 'tenant_id', value: (entry) => entry.tenantId },
];
const csvFields: readonly DataField<StoredEntry>[] = [
  ...fields,
  { field: 'before', value: (entry) => (entry.before === null ? null : JSON.stringify(entry.before)) },
  { field: 'after', value: (entry) => (entry.after === null ? null : JSON.stringify(entry.after)) },
];

/** The entries as a file that is written while it is read: a year of them never stands in memory at once. */
function exportEntries(batches: AsyncIterable<StoredEntry[]>, format: 'csv' | 'json'): Readable {
  return Readable.from(format === 'csv' ? csvPieces(batches) : jsonPieces(batches));
}

async function* csvPieces(batches: AsyncIterable<StoredEntry[]>): AsyncGenerator<string> {
  const header = tableCsv(csvFields, []);
  yield header;
  for await (const entries of batches) yield tableCsv(csvFields, entries).slice(header.length);
}

async function* jsonPieces(batches: AsyncIterable<StoredEntry[]>): AsyncGenerator<string> {
  yield '{"rows":[';
  let separator = '';
  for await (const entries of batches) {
    const values = tableValues(fields, entries);
    const lines = entries.map(({ before, after }, index) =>
      JSON.stringify({ ...values[index], before, after }),
    );
    yield `${separator}\n${lines.join(',\n')}`;
    separator = ',';
  }
  yield '\n]}\n';
}

const rowsPerRead = 500;

/** One page, newest first; `nextBefore` is the id to go on from, null at the end. */
export async function readEntries(
  db: Queryable,
  filter: AuditFilter,
  page: { before?: number | null; limit: number },
): Promise<{ entries: StoredEntry[]; nextBefore: number | null }> {
  const found = await listEntries(db, filter, page.before ?? null, page.limit + 1);
  const entries = found.slice(0, page.limit);
  return { entries, nextBefore: found.length > page.limit ? entries.at(-1)!.id : null };
}

/** Every entry that fits, newest first, read in batches: a year of entries never stands in memory at once. */
export async function* streamEntries(db: Queryable, filter: AuditFilter): AsyncGenerator<StoredEntry[]> {
  for (let before: number | null = null; ; ) {
    const batch: StoredEntry[] = await listEntries(db, filter, before, rowsPerRead);
    if (batch.length > 0) yield batch;
    if (batch.length < rowsPerRead) return;
    before = batch.at(-1)!.id;
  }
}
