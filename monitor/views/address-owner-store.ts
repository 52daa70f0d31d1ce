/** The MACs that have an address, as the inventory was listed last. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface AddressOwners {
  /** Canonical text. */
  address: string;
  macs: string[];
}

/**
 * Addresses of the servers on a node, each with every MAC of the site that has it, in an order that lasts. A private address may be
 * another server's on another network, so only addresses that are unique are listed. `clusterId` null: any cluster of the site.
 */
export async function listAddressOwners(
  reader: Queryable,
  siteId: number,
  node: { name: string; clusterId: number | null },
): Promise<AddressOwners[]> {
  const { rows } = await sql<AddressOwners>`
    select host(p.address) as address, array_agg(distinct p.mac order by p.mac) as macs
    from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
    where p.ended_at is null and p.address is not null and p.is_unique
    group by p.address
    having bool_or(p.node = ${node.name} and coalesce(p.cluster_id = ${node.clusterId}::bigint, true))
    order by p.address`.execute(reader);
  return rows;
}

/** How many addresses that lists for each of these sensors; none for one that is missing. */
export async function countOwnedAddresses(
  db: Queryable,
  sensorIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await sql<{ sensorId: number; addresses: number }>`
    select s.id as "sensorId", count(distinct p.address)::int as addresses
    from sensors s join site_clusters c on c.site_id = s.site_id
    join vm_placements p on p.cluster_id = c.cluster_id and p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)
    where s.id = any(${[...sensorIds]}::bigint[]) and p.ended_at is null and p.address is not null and p.is_unique
    group by s.id`.execute(db);
  return new Map(rows.map(({ sensorId, addresses }) => [sensorId, addresses]));
}
