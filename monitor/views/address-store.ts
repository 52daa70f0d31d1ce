/** Whose addresses are and were, by what operations listed: allocations, the inventory and its MACs. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ServerAddress {
  clusterId: number;
  serverId: number;
  /** Canonical text. */
  address: string;
}

export interface ServerName extends AddressServer {
  node: string | null;
}

const owned = sql`
  select cluster_id, virtual_machine_id as vm_id, address from allocation_targets where is_supported
  union select cluster_id, vm_id, address from vm_placements where ended_at is null and address is not null`;

/** Addresses of these servers, in an order that lasts. */
export async function listAddressesOfServers(
  db: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<ServerAddress[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<ServerAddress>`
    with asked as (
      select * from unnest(${servers.map((one) => one.clusterId)}::bigint[], ${servers.map((one) => one.serverId)}::bigint[])
        as s(cluster_id, vm_id)),
    owned as (${owned})
    select o.cluster_id, o.vm_id as server_id, host(o.address) as address
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
    select o.cluster_id, o.vm_id as server_id, coalesce(v.name, 'VM ' || o.vm_id) as name, v.node
    from owned o left join inventory_vms v on v.cluster_id = o.cluster_id and v.vm_id = o.vm_id
    where o.address = ${address}::inet and o.cluster_id = any(${[...clusterIds]}::bigint[])
    order by o.cluster_id, o.vm_id`.execute(db);
  return rows;
}

/** The names of these servers; those that the inventory never listed are missing. */
export async function nameServers(
  db: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<ServerName[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<ServerName>`
    select v.cluster_id, v.vm_id as server_id, v.name, v.node
    from inventory_vms v join unnest(${servers.map((one) => one.clusterId)}::bigint[],
      ${servers.map((one) => one.serverId)}::bigint[]) as a(cluster_id, vm_id)
      on a.cluster_id = v.cluster_id and a.vm_id = v.vm_id`.execute(db);
  return rows;
}

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
    select s.id as sensor_id, count(distinct p.address)::int as addresses
    from sensors s join site_clusters c on c.site_id = s.site_id
    join vm_placements p on p.cluster_id = c.cluster_id and p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)
    where s.id = any(${[...sensorIds]}::bigint[]) and p.ended_at is null and p.address is not null and p.is_unique
    group by s.id`.execute(db);
  return new Map(rows.map(({ sensorId, addresses }) => [sensorId, addresses]));
}

export interface AddressServer {
  clusterId: number;
  serverId: number;
  name: string;
}

export interface AddressPeriod {
  address: string;
  /** Blank: on any segment. */
  segment: string;
  /** Seconds since 1970, the end excluded. */
  from: number;
  to: number;
}

/** For each period the servers that had the address in it, in their order; usually one. */
export async function listServersOfAddresses(
  db: Queryable,
  siteId: number,
  periods: readonly AddressPeriod[],
): Promise<AddressServer[][]> {
  const servers: AddressServer[][] = periods.map(() => []);
  if (periods.length === 0) return servers;
  const { rows } = await sql<AddressServer & { index: number }>`
    with asked as (
      select * from unnest(${periods.map((one) => one.address)}::inet[], ${periods.map((one) => one.segment)}::text[],
        ${periods.map((one) => one.from)}::float8[], ${periods.map((one) => one.to)}::float8[])
        with ordinality as a(address, segment, starts, ends, index))
    select distinct (a.index - 1)::int as index, p.cluster_id, p.vm_id as server_id,
      coalesce(v.name, 'VM ' || p.vm_id) as name
    from asked a join vm_placements p on p.address = a.address
      and p.began_at < to_timestamp(a.ends) and (p.ended_at is null or p.ended_at > to_timestamp(a.starts))
      and (p.is_unique or a.segment = '' or p.segment in ('', a.segment))
    join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
    left join inventory_vms v on v.cluster_id = p.cluster_id and v.vm_id = p.vm_id
    order by 1, 2, 3`.execute(db);
  for (const { index, ...server } of rows) servers[index]!.push(server);
  return servers;
}

export interface AddressGeneration extends ServerAddress {
  /** The allocation's id and its assignment: a later owner has another one. */
  generation: string;
}

/** Which allocation the addresses of servers belong to, as operations listed it last. */
export async function listAddressGenerations(
  db: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<AddressGeneration[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<AddressGeneration>`
    select t.cluster_id, t.virtual_machine_id as server_id, host(t.address) as address,
      t.allocation_id || ' ' || t.assigned_at as generation
    from allocation_targets t
    join (select distinct cluster_id, vm_id from unnest(${servers.map((one) => one.clusterId)}::bigint[],
      ${servers.map((one) => one.serverId)}::bigint[]) as g(cluster_id, vm_id)) s
      on s.cluster_id = t.cluster_id and s.vm_id = t.virtual_machine_id
    order by 1, 2, 3, 4`.execute(db);
  return rows;
}

/** `server`: of a server on a node whose sensor reports the incident; `host`: of a host of the site, such as a gateway. */
export type AttackedOwner = 'server' | 'host' | 'unknown';

/**
 * In the order of the targets. A sensor whose node has no server, such as one at a router, speaks for all servers of its site. What
 * hosts say of their own interfaces takes no address from a server.
 */
export async function findAttackedOwners(
  trx: Queryable,
  targets: readonly { siteId: number; incidentId: string; address: string }[],
): Promise<AttackedOwner[]> {
  const { rows } = await sql<{ owner: AttackedOwner }>`
    with placed as (
      select p.address, p.node, p.cluster_id, c.site_id
      from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id
      where p.ended_at is null and p.address is not null),
    hosts as (
      select distinct s.site_id, host(a::inet) as address
      from host_inventories h join sensors s on s.id = h.sensor_id, jsonb_array_elements(h.interfaces) as i,
        jsonb_array_elements_text(i -> 'addresses') as a
      where s.site_id = any(${targets.map(({ siteId }) => siteId)}::bigint[]))
    select case
      when exists (
        select 1 from incident_observations o join sensors s on s.id = o.sensor_id
        join placed p on p.site_id = s.site_id and p.address = t.address::inet
        where o.incident_id = t."incidentId" and s.site_id = t."siteId" and (
          p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)
          or not exists (select 1 from placed q where q.site_id = s.site_id and q.node = s.node))) then 'server'
      when exists (select 1 from hosts h where h.site_id = t."siteId" and h.address = t.address) then 'host'
      else 'unknown' end as owner
    from rows from (jsonb_to_recordset(${JSON.stringify(targets)}::jsonb) as ("siteId" bigint, "incidentId" uuid, address text))
      with ordinality as t("siteId", "incidentId", address, n) order by n`.execute(trx);
  return rows.map(({ owner }) => owner);
}

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
    select c.site_id, p.node, p.cluster_id, count(distinct t.address)::int as addresses
    from allocation_targets t
    join unnest(${clusterIds}::bigint[], ${clusters.map((one) => one.siteId)}::bigint[])
      as c(cluster_id, site_id) on c.cluster_id = t.cluster_id
    left join places p on p.address = t.address and p.cluster_id = t.cluster_id
    where t.is_supported and t.cluster_id = any(${clusterIds}::bigint[]) group by 1, 2, 3`.execute(db);
  return rows;
}

/** Grows when the base URL or the token changes; null without an enabled connection. */
export async function readConnectionRevision(reader: Queryable): Promise<number | null> {
  const { rows } = await sql<{ revision: number }>`
    select revision from operations_connection where is_enabled`.execute(reader);
  return rows[0]?.revision ?? null;
}
