/** Addresses of live allocations, by the nodes that their servers are on: what sensors keep a place for. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/**
 * Exact addresses of the supported targets of these clusters; for a node without those that servers of other nodes alone
 * have.
 */
export async function listProtectedAddresses(
  db: Queryable,
  clusterIds: readonly number[],
  node: { name: string; clusterId: number | null } | null,
): Promise<string[]> {
  const ofClusters = sql`cluster_id = any(${[...clusterIds]}::bigint[])`;
  const targets = sql`select host(t.address) as address from allocation_targets t where t.is_supported and t.${ofClusters}`;
  const placed = sql`select from vm_placements p
    where p.address = t.address and p.ended_at is null and p.address is not null and p.${ofClusters}`;
  const isOfNode = sql`(p.node is null
    or p.node = ${node?.name ?? null}::text and coalesce(p.cluster_id = ${node?.clusterId ?? null}::bigint, true))`;
  // Every sensor asks twice a minute. Two simple questions that indexes answer take a fraction of one with a group by address.
  const { rows } = await sql<{ address: string }>`
    ${node ? sql`${targets} and exists (${placed} and ${isOfNode}) union ${targets} and not exists (${placed})` : sql`${targets} group by 1`}
    order by 1`.execute(db);
  return rows.map((row) => row.address);
}

/** How many addresses the servers of a node have. Without a node: no node is known to carry them. */
export interface NodeAddresses {
  siteId: number;
  node: string | null;
  clusterId: number | null;
  addresses: number;
}

/** Of every node of these clusters. Targets and places are read once, however many sensors ask: alerts do every few seconds. */
export async function countProtectedByNode(
  db: Queryable,
  clusters: readonly { clusterId: number; siteId: number }[],
): Promise<NodeAddresses[]> {
  const clusterIds = clusters.map((one) => one.clusterId);
  const { rows } = await sql<NodeAddresses>`
    with places as materialized (
      select distinct address, cluster_id, node from vm_placements
      where ended_at is null and address is not null
        and cluster_id = any(${clusterIds}::bigint[]))
    select c.site_id as "siteId", p.node, p.cluster_id as "clusterId", count(distinct t.address)::int as addresses
    from allocation_targets t
    join unnest(${clusterIds}::bigint[], ${clusters.map((one) => one.siteId)}::bigint[])
      as c(cluster_id, site_id) on c.cluster_id = t.cluster_id
    left join places p on p.address = t.address and p.cluster_id = t.cluster_id
    where t.is_supported and t.cluster_id = any(${clusterIds}::bigint[]) group by 1, 2, 3`.execute(db);
  return rows;
}
