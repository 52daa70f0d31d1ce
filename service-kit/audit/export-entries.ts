import { Readable } from 'node:stream';
import { type DataField, isoTime, tableCsv, tableValues } from '#service-kit/pages/index.ts';
import type { StoredEntry } from './entry.ts';

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
export function exportEntries(batches: AsyncIterable<StoredEntry[]>, format: 'csv' | 'json'): Readable {
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
