/**
 * The targets of feeds whose items are allocations: what operations last listed, shared by all of them.
 *
 * A list counts only as a whole. It is read again after 30 seconds, and at once when a receipt says that operations knows
 * another owner by now, or when a cluster, the connection or the inventory's servers have changed.
 */
import type { Clock } from '#common/clock/index.ts';
import { canonicalAddress, isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import type { AllocationTarget } from '#contracts/admin-api/schemas.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import { listSection, type PlanSection, type PlanSubject } from '#monitor/sensors/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import {
  countProtectedByNode,
  listProtectedAddresses,
  type NodeAddresses,
} from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Round, Visit } from '../round.ts';
import * as store from './store.ts';

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
    listGenerations: (servers: readonly { clusterId: number; serverId: number }[]) =>
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

const pageSize = 1_000;
const targetsMax = 500_000;

/**
 * Pages through all allocation targets, renewing the lease between pages. A page may be empty while its cursor still
 * moves (NET-2.3). Only globally routable unicast is marked as supported.
 */
async function fetchTargets(
  { client, renew }: Pick<Round, 'client' | 'renew'>,
  documentationIsGlobal: boolean,
): Promise<(AllocationTarget & { is_supported: boolean })[]> {
  const found = new Map<number, AllocationTarget & { is_supported: boolean }>();
  let afterId: number | null = null;
  for (;;) {
    const page = await client.listTargets(afterId, pageSize);
    for (const target of page.targets) {
      const address = canonicalAddress(target.address);
      if (address === null || Number.isNaN(Date.parse(target.assigned_at)))
        throw new OperationsError('malformed');
      const is_supported = isGlobalUnicast(parseAddress(address)!, documentationIsGlobal);
      found.set(target.id, { ...target, address, is_supported });
    }
    if (page.next_after_id === null) return [...found.values()];
    // A cursor that stands still would never end.
    if (page.next_after_id <= (afterId ?? 0) || found.size > targetsMax)
      throw new OperationsError('malformed');
    await renew();
    afterId = page.next_after_id;
  }
}

/** The contract's bound of `protected_targets`. */
const addressesMax = 4096;

/** The plan's section `protection`: exact addresses of live allocations, which have a place in a sensor's tables under any traffic. */
export function createProtectionSection({
  db,
  reader,
  sites,
}: {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
  sites: Pick<Sites, 'listClusters'>;
}): PlanSection {
  return listSection<string>({
    name: 'protection',
    label: 'protected addresses',
    entriesMax: addressesMax,
    advice: 'Move servers to other nodes, or check the node of this sensor.',
    // As old as the plan itself.
    versions: {},
    async list({ siteId, node }) {
      const clusters = (await sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
      const clusterIds = clusters.map(({ clusterId }) => clusterId);
      return (await listProtectedAddresses(reader(), clusterIds, node)).sort();
    },
    toFields: (entries, leftOut) => ({
      protected_targets: entries,
      ...(leftOut > 0 ? { protected_targets_left_out: leftOut } : {}),
    }),
    async countEntries(subjects) {
      const siteIds = new Set(subjects.map(({ siteId }) => siteId));
      const clusters = (await sites.listClusters()).filter(({ siteId }) => siteIds.has(siteId));
      const counted = await countProtectedByNode(db(), clusters);
      return new Map(subjects.map((subject) => [subject.sensorId, sumOf(subject, counted)]));
    },
  });
}

/** Addresses of the sensor's node, and those that no node is known to carry. */
function sumOf({ siteId, node }: PlanSubject, counted: readonly NodeAddresses[]): number {
  let sum = 0;
  for (const one of counted) {
    if (one.siteId !== siteId) continue;
    const isOfNode = one.node === node.name && (node.clusterId === null || node.clusterId === one.clusterId);
    if (one.node === null || isOfNode) sum += one.addresses;
  }
  return sum;
}
