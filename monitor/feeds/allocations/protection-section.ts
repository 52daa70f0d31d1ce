/** The plan's section `protection`: exact addresses of live allocations, which have a place in a sensor's tables under any traffic. */
import { listSection, type PlanSection, type PlanSubject } from '#monitor/sensors/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import { countProtectedByNode, listProtectedAddresses, type NodeAddresses } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The contract's bound of `protected_targets`. */
const addressesMax = 4096;

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
