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
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ChangesPage, type ChangesQuery, listChanges } from './list-changes.ts';
import * as store from './store.ts';

export type { ChangesPage, ChangesQuery } from './list-changes.ts';
export type { StoredChange } from './store.ts';
export type ServerChangeKind = InventoryChangeKind;

export interface ServerChanges {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** The changes after a position, those of the given clusters alone. */
  list(query: ChangesQuery): Promise<ChangesPage>;
}

/**
 * Notes a change of a server that runs or could; nothing for one that is still being made or is being destroyed. `tx` must be the transaction
 * that ends the work.
 */
export function noteServerChange(tx: Queryable, serverId: number, kind: ServerChangeKind): Promise<void> {
  return store.insertChange(tx, serverId, kind);
}

export function createServerChanges(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): ServerChanges {
  const retention = createExpiryLoop({
    name: 'operations-change-retention',
    ...deps,
    deleteExpired: store.deleteExpired,
  });
  return { work: { parts: [retention] }, list: (query) => listChanges(deps.db(), query) };
}
