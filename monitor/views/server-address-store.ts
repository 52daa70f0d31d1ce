/** Which servers have which addresses now, by what operations listed last: live allocations and the inventory. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ServerAddress {
  clusterId: number;
  vmId: number;
  /** Canonical text. */
  address: string;
}

export interface ServerName {
  clusterId: number;
  vmId: number;
  name: string;
  node: string | null;
}

const owned = sql`
  select cluster_id, virtual_machine_id as vm_id, address from allocation_targets where is_supported
  union select cluster_id, vm_id, address from vm_placements where ended_at is null and address is not null`;

/** Addresses of these servers, in an order that lasts. */
export async function listAddressesOfServers(
  db: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<ServerAddress[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<ServerAddress>`
    with asked as (
      select * from unnest(${servers.map((one) => one.clusterId)}::bigint[], ${servers.map((one) => one.vmId)}::bigint[])
        as s(cluster_id, vm_id)),
    owned as (${owned})
    select o.cluster_id as "clusterId", o.vm_id as "vmId", host(o.address) as address
    from owned o join asked a on a.cluster_id = o.cluster_id and a.vm_id = o.vm_id
    order by o.cluster_id, o.vm_id, o.address`.execute(db);
  return rows;
}

/** Servers of these clusters that have this address, in an order that lasts; usually one. */
export async function findServersOfAddress(
  db: Queryable,
  clusterIds: readonly number[],
  address: string,
): Promise<ServerName[]> {
  const { rows } = await sql<ServerName>`
    with owned as (${owned})
    select o.cluster_id as "clusterId", o.vm_id as "vmId", coalesce(v.name, 'VM ' || o.vm_id) as name, v.node
    from owned o left join inventory_vms v on v.cluster_id = o.cluster_id and v.vm_id = o.vm_id
    where o.address = ${address}::inet and o.cluster_id = any(${[...clusterIds]}::bigint[])
    order by o.cluster_id, o.vm_id`.execute(db);
  return rows;
}

/** The names of these servers; those that the inventory never listed are missing. */
export async function nameServers(
  db: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<ServerName[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<ServerName>`
    select v.cluster_id as "clusterId", v.vm_id as "vmId", v.name, v.node
    from inventory_vms v join unnest(${servers.map((one) => one.clusterId)}::bigint[],
      ${servers.map((one) => one.vmId)}::bigint[]) as a(cluster_id, vm_id)
      on a.cluster_id = v.cluster_id and a.vm_id = v.vm_id`.execute(db);
  return rows;
}
