import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressPool, Allocation, PageQuery } from './allocation.ts';
import type { EndedGeneration } from './reserved-store.ts';

export interface PoolRow {
  id: number;
  family: 4 | 6;
  prefixLength: number;
  gateway: string;
}

/** An address that an order holds until it is paid. */
export interface AddressHold {
  poolId: number;
  clusterId: number;
  /** The id that the server will have. */
  serverId: number;
  address: string;
  isPrimary: boolean;
}

const stamp = (column: RawBuilder<unknown>) =>
  sql`to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const allocationColumns = sql`
  id, pool_id, cluster_id, tenant_id, server_id, host(address) as address, family(address) as family, prefix_length,
  host(gateway) as gateway, reverse_dns, is_primary,
  ${stamp(sql`assigned_at`)} as assigned_at, ${stamp(sql`released_at`)} as released_at`;

/** Makes a pool unless the cluster has one of this prefix. */
export async function ensurePool(db: Queryable, pool: AddressPool): Promise<void> {
  await sql`insert into address_pools (cluster_id, prefix, gateway, first_address, last_address)
    values (${pool.clusterId}, ${pool.prefix}::cidr, ${pool.gateway}::inet, ${pool.firstAddress}::inet,
            ${pool.lastAddress}::inet)
    on conflict (cluster_id, prefix) do nothing`.execute(db);
}

/** Every pool, or one cluster's, with the number of its addresses in use. */
export async function listPools(
  db: Queryable,
  clusterId: number | null,
): Promise<(AddressPool & { id: number; family: 4 | 6; givenCount: number })[]> {
  const { rows } = await sql<AddressPool & { id: number; family: 4 | 6; givenCount: number }>`
    select p.id, p.cluster_id, p.prefix::text as prefix, family(p.prefix) as family, host(p.gateway) as gateway,
      host(p.first_address) as first_address, host(p.last_address) as last_address,
      (select count(*) from allocations a where a.pool_id = p.id and a.released_at is null)
        + (select count(*) from reserved_addresses r where r.pool_id = p.id and r.state = 'available') as given_count
    from address_pools p where ${clusterId}::bigint is null or p.cluster_id = ${clusterId}
    order by p.cluster_id, family(p.prefix), p.prefix`.execute(db);
  return rows;
}

/** A pool of the cluster that shares addresses with this prefix. */
export async function findOverlap(tx: Queryable, clusterId: number, prefix: string): Promise<string | null> {
  const { rows } = await sql<{ prefix: string }>`
    select prefix::text as prefix from address_pools
    where cluster_id = ${clusterId} and prefix && ${prefix}::cidr limit 1`.execute(tx);
  return rows[0]?.prefix ?? null;
}

export async function insertPool(tx: Queryable, pool: AddressPool): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into address_pools (cluster_id, prefix, gateway, first_address, last_address)
    values (${pool.clusterId}, ${pool.prefix}::cidr, ${pool.gateway}::inet, ${pool.firstAddress}::inet,
            ${pool.lastAddress}::inet) returning id`.execute(tx);
  return rows[0]!.id;
}

/** Whether an address of the pool was ever allocated or is held, with the pool locked; null when there is no such pool. */
export async function lockPoolUse(tx: Queryable, poolId: number): Promise<boolean | null> {
  const locked = await sql`select 1 from address_pools where id = ${poolId} for update`.execute(tx);
  if (locked.rows.length === 0) return null;
  // Checked after the lock: an assignment holds it until the allocation is inserted.
  const { rows } = await sql<{ used: boolean }>`
    select exists (select 1 from allocations where pool_id = ${poolId})
      or exists (select 1 from address_holds where pool_id = ${poolId})
      or exists (select 1 from reserved_addresses where pool_id = ${poolId}) as used`.execute(tx);
  return rows[0]!.used;
}

export async function deletePool(tx: Queryable, poolId: number): Promise<void> {
  await sql`delete from address_pools where id = ${poolId}`.execute(tx);
}

/** The cluster's pools, locked until the transaction ends, so that assignments run one at a time. */
export async function lockPools(tx: Queryable, clusterId: number): Promise<PoolRow[]> {
  const { rows } = await sql<PoolRow>`
    select id, family(prefix) as family, masklen(prefix) as prefix_length, host(gateway) as gateway
    from address_pools where cluster_id = ${clusterId} order by id for update`.execute(tx);
  return rows;
}

/** The pool of each of these addresses, by prefix. */
export async function findPoolsOf(
  tx: Queryable,
  clusterId: number,
  addresses: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await sql<{ address: string; id: number }>`
    select host(wanted) as address, min(p.id) as id
    from unnest(${[...addresses]}::inet[]) as wanted
    join address_pools p on p.cluster_id = ${clusterId} and wanted << p.prefix
    group by wanted`.execute(tx);
  return new Map(rows.map((row) => [row.address, row.id]));
}

export async function listBusyAddresses(
  tx: Queryable,
  clusterId: number,
  addresses: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql<{ address: string }>`
    select host(address) as address from allocations
    where cluster_id = ${clusterId} and released_at is null and address = any(${[...addresses]}::inet[])
    union all
    select host(address) from address_holds
    where cluster_id = ${clusterId} and address = any(${[...addresses]}::inet[])
    union all
    select host(address) from reserved_addresses
    where cluster_id = ${clusterId} and address = any(${[...addresses]}::inet[])`.execute(tx);
  return new Set(rows.map((row) => row.address));
}

/**
 * A free address of the pool, or null. Never used ones first, then the longest rested; `held` ones never.
 * The pool's history is grouped once and joined, so that a long-lived pool costs one pass and not one look per address.
 * Of the pool's addresses as many are looked at as were ever taken, and two more: one is the gateway, the other was
 * never used.
 */
export async function findFreeAddress(
  tx: Queryable,
  poolId: number,
  held: readonly string[],
): Promise<string | null> {
  const { rows } = await sql<{ address: string }>`
    with pool as (select * from address_pools where id = ${poolId}),
    history as (
      select address, max(released_at) as rested_since, bool_or(released_at is null) as is_busy
      from allocations where pool_id = ${poolId} group by address),
    taken as (
      select (select count(*) from history) + ${held.length}
        + (select count(*) from address_holds where pool_id = ${poolId})
        + (select count(*) from reserved_addresses where pool_id = ${poolId}) as count),
    candidates as (
      select pool.first_address + n as address from pool, taken,
        -- The size of an IPv6 pool may be more than a bigint holds, so it is compared, not subtracted.
        generate_series(0, least(taken.count + 1,
          case family(pool.prefix) when 4 then pool.last_address - pool.first_address end)) as n
      where pool.first_address + n <> pool.gateway and pool.first_address + n <= pool.last_address)
    select host(c.address) as address
    from candidates c left join history h on h.address = c.address
    where h.is_busy is not true and not c.address = any(${[...held]}::inet[])
      and not exists (select 1 from address_holds o where o.pool_id = ${poolId} and o.address = c.address)
      and not exists (select 1 from reserved_addresses r where r.pool_id = ${poolId} and r.address = c.address)
    order by h.rested_since nulls first, c.address limit 1`.execute(tx);
  return rows[0]?.address ?? null;
}

export async function insertHolds(tx: Queryable, holds: readonly AddressHold[]): Promise<void> {
  for (const held of holds)
    await sql`insert into address_holds (cluster_id, address, pool_id, server_id, is_primary)
      values (${held.clusterId}, ${held.address}::inet, ${held.poolId}, ${held.serverId}, ${held.isPrimary})`.execute(
      tx,
    );
}

/** A generation for each address that the server's order holds, the primary one first. */
export async function insertHeldAllocations(
  tx: Queryable,
  server: { serverId: number; tenantId: number },
): Promise<void> {
  await sql`
    insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
    select h.pool_id, h.cluster_id, ${server.tenantId}, h.server_id, h.address, masklen(p.prefix), p.gateway, h.is_primary
    from address_holds h join address_pools p on p.id = h.pool_id
    where h.server_id = ${server.serverId} order by h.is_primary desc, h.address`.execute(tx);
}

export async function deleteHolds(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from address_holds where server_id = ${serverId}`.execute(tx);
}

/** Ends all generations of a server; returns them. */
export async function endGenerations(tx: Queryable, serverId: number): Promise<EndedGeneration[]> {
  const { rows } = await sql<EndedGeneration>`update allocations set released_at = svc_now()
    where server_id = ${serverId} and released_at is null
    returning cluster_id, host(address) as address, reverse_dns is not null as is_named`.execute(tx);
  return rows;
}

/** Makes the generations of servers so many days older, for demos and tests. */
export async function backdateAllocations(
  tx: Queryable,
  serverIds: readonly number[],
  days: number,
): Promise<void> {
  await sql`update allocations set assigned_at = assigned_at - make_interval(days => ${days})
    where server_id = any(${[...serverIds]}::bigint[])`.execute(tx);
}

export async function listActiveAllocations(db: Queryable, query: PageQuery): Promise<Allocation[]> {
  const inClusters =
    query.clusterIds === undefined ? sql`true` : sql`cluster_id = any(${[...query.clusterIds]}::bigint[])`;
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations
    where id > ${query.afterId} and released_at is null and ${inClusters}
    order by id limit ${query.limit}`.execute(db);
  return rows;
}

export async function findAllocations(db: Queryable, ids: readonly number[]): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations where id = any(${[...ids]}::bigint[])`.execute(db);
  return rows;
}

/** Shared: readers don't wait for each other, a release waits for them. */
export async function lockAllocation(tx: Queryable, id: number): Promise<Allocation | null> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations where id = ${id} for share`.execute(tx);
  return rows[0] ?? null;
}

/** Generations that had the address at this time, in these clusters, locked as `lockAllocation` does. */
export async function lockGenerationsAt(
  tx: Queryable,
  { address, at, clusterIds }: { address: string; at: Date; clusterIds: readonly number[] },
): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations
    where address = ${address}::inet and assigned_at <= ${at} and (released_at is null or released_at > ${at})
      and cluster_id = any(${[...clusterIds]}::bigint[])
    order by id for share`.execute(tx);
  return rows;
}

/** As `lockAllocation`, of several; in the order of their ids, so that two deliveries never wait for each other. */
export async function lockAllocations(tx: Queryable, ids: readonly number[]): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations where id = any(${[...ids]}::bigint[]) order by id for share`.execute(
    tx,
  );
  return rows;
}

/** As `lockAllocation`, of those that a server has now. */
export async function lockAllocationsOfServer(tx: Queryable, serverId: number): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations where server_id = ${serverId} and released_at is null
    order by is_primary desc, id for share`.execute(tx);
  return rows;
}

export async function listAllocationsOfServers(
  db: Queryable,
  serverIds: readonly number[],
): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations
    where server_id = any(${[...serverIds]}::bigint[]) and released_at is null
    order by server_id, is_primary desc, id`.execute(db);
  return rows;
}

export async function listAllocationsOf(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<Allocation[]> {
  const { rows } = await sql<Allocation>`
    select ${allocationColumns} from allocations
    where server_id = ${of.serverId} and tenant_id = ${of.tenantId} and released_at is null
    order by is_primary desc, id`.execute(db);
  return rows;
}
