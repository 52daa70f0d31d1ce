/**
 * Changes of servers that their inventory does not show, for monitors, which mark them on their charts: a firewall that took effect,
 * a private network that was attached or detached, a restart.
 *
 * A feature calls `noteServerChange` in the transaction that ends the work at the hypervisor. So every way to ask for the
 * change is covered, and what failed is not told. A change says that and when, never what or by whom. This feature imports
 * no other, so any feature may note.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { InventoryChangeKind } from '#contracts/admin-api/inventory-changes.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type ServerChangeKind = InventoryChangeKind;

export type ServerChanges = ReturnType<typeof createServerChanges>;

/**
 * Notes a change of a server that runs or could; nothing for one that is still being made or is being destroyed. `tx` must be the transaction
 * that ends the work.
 */
export function noteServerChange(tx: Queryable, serverId: number, kind: ServerChangeKind): Promise<void> {
  return store.insertChange(tx, serverId, kind);
}

export function createServerChanges(deps: { db: () => Queryable; clock: Clock; reporter: Reporter }) {
  const retention = createExpiryLoop({
    name: 'operations-change-retention',
    ...deps,
    deleteExpired: store.deleteExpired,
  });
  return {
    /** What it does beside the calls. */
    work: { parts: [retention] } satisfies FeatureWork,
    /** The changes after a position, those of the given clusters alone. */
    list: (query: ChangesQuery) => listChanges(deps.db(), query),
  };
}

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
async function listChanges(db: Queryable, { after, limit, clusterIds }: ChangesQuery): Promise<ChangesPage> {
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
