import type { Queryable } from '#service-kit/postgres/index.ts';
import type { StoredEntry } from './entry.ts';
import { type AuditFilter, listEntries } from './store.ts';

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
