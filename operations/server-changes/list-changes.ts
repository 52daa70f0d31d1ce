import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface ChangesQuery {
  /** Position of the last change that the reader has seen; 0 for none. */
  after: number;
  /** Changes of all clusters that the page walks. */
  limit: number;
  /** Absent: all clusters. */
  clusterIds?: readonly number[];
}

export interface ChangesPage {
  changes: store.StoredChange[];
  /** Where the next page begins. */
  nextAfter: number;
  hasMore: boolean;
}

/** Changes that one reading gives positions to; the next reading goes on. */
const numberedAtOnce = 10_000;

/**
 * A page of changes by position, for readers that keep a cursor.
 *
 * A change has no position when its transaction commits: readers give positions to those that are committed, one reader at a
 * time. So no position below one that was read appears later, however late a transaction commits. A cursor beyond all
 * positions is from before a backup was restored: the list begins anew, and readers know by the id what they have.
 */
export async function listChanges(
  db: Queryable,
  { after, limit, clusterIds }: ChangesQuery,
): Promise<ChangesPage> {
  if (await store.hasUnnumbered(db))
    await inTransaction(db, async (tx) => {
      await store.lockNumbering(tx);
      await store.numberChanges(tx, numberedAtOnce);
    });
  const from = after > (await store.lastPosition(db)) ? 0 : after;
  const { last, walked } = await store.walkPositions(db, from, limit);
  if (last === null) return { changes: [], nextAfter: from, hasMore: false };
  const changes = await store.listBetween(db, { after: from, upTo: last, clusterIds });
  return { changes, nextAfter: last, hasMore: walked === limit };
}
