/**
 * The targets of feeds whose items are allocations: what operations last listed, shared by all of them.
 *
 * A list counts only as a whole. It is read again after 30 seconds, and at once when a receipt says that operations knows
 * another owner by now, or when a cluster, the connection or the inventory's servers have changed.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Round, Visit } from '../round.ts';
import { fetchTargets } from './fetch-targets.ts';
import * as store from './store.ts';

export { createProtectionSection } from './protection-section.ts';
export type { Generation, StoredTarget } from './store.ts';

export type Allocations = ReturnType<typeof createAllocations>;

const targetsKeptMs = 30_000;

export function createAllocations(deps: {
  db: () => Queryable;
  clock: Clock;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
}) {
  const { db, clock } = deps;
  let fetchedAtMs: number | null = null;
  /** How often the list became old: one that is read meanwhile is old at once. */
  let forgotten = 0;
  return {
    /** Lists the targets again where the list is old; for a feed's `prepare`. */
    async refresh(round: Round) {
      const now = clock.nowMs();
      if (fetchedAtMs !== null && now - fetchedAtMs < targetsKeptMs) return;
      const before = forgotten;
      const targets = await fetchTargets(round, deps.documentationIsGlobal);
      await round.write((trx) => store.replaceTargets(trx, targets));
      fetchedAtMs = before === forgotten ? now : null;
    },
    /** The list is old from now on. */
    forget() {
      forgotten += 1;
      fetchedAtMs = null;
    },
    /** The generations of mapped clusters that a feed visited longest ago. */
    listDue: (
      feed: string,
      clusterIds: readonly number[],
      { limit, notVisitedSince }: Pick<Round, 'limit' | 'notVisitedSince'>,
    ) => store.listDueTargets(db(), feed, clusterIds, limit, notVisitedSince),
    /** All targets, those that are not globally routable, and those in clusters that no site has. */
    count: (clusterIds: readonly number[]) => store.countTargets(db(), clusterIds),
    /** The supported allocations of these servers. */
    listGenerations: (servers: readonly { clusterId: number; vmId: number }[]) =>
      store.listGenerations(db(), servers),
    /** The clusters in which these addresses are allocated. */
    findClusters: (addresses: readonly string[]) => store.findClusters(db(), addresses),
    /** Forgets what operations does not know any more; for a feed's `settle`. */
    async dropUnmatched(trx: Queryable, visits: readonly Visit[]) {
      const unmatched = visits.filter(({ outcome }) => outcome === 'unmatched');
      if (unmatched.length === 0) return;
      await store.dropTargets(
        trx,
        unmatched.map(({ key }) => key),
      );
      fetchedAtMs = null;
    },
  };
}
