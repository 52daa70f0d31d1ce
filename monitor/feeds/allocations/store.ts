/** Every statement on the targets: the allocation generations that operations last listed. */
import { sql } from 'kysely';
import type { AllocationTarget } from '#contracts/admin-api/schemas.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Position } from '../round.ts';

/** A target of the last complete page-through, with its cursor in one feed. */
export interface StoredTarget {
  id: number;
  virtualMachineId: number;
  clusterId: number;
  /** Canonical text. */
  address: string;
  assignedAt: string;
  /** The generation: a new owner of an allocation id is another one. */
  key: string;
  position: Position | null;
}

/** The key of a generation in `feed_cursors`. */
const keyOf = sql`t.allocation_id || ' ' || t.assigned_at`;

/** Replaces the cached targets by a complete page-through; feeds that do so at the same time follow each other. */
export async function replaceTargets(
  db: Queryable,
  targets: readonly (AllocationTarget & { is_supported: boolean })[],
): Promise<void> {
  await sql`lock table allocation_targets in share row exclusive mode`.execute(db);
  await sql`delete from allocation_targets`.execute(db);
  await sql`
    insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address,
      assigned_at, is_supported)
    select t.id, t.billing_account_id, t.virtual_machine_id, t.cluster_id, t.address, t.assigned_at, t.is_supported
    from jsonb_to_recordset(${JSON.stringify(targets)}::jsonb) as t(id bigint, billing_account_id bigint,
      virtual_machine_id bigint, cluster_id bigint, address inet, assigned_at text, is_supported boolean)`.execute(
    db,
  );
}

/** Forgets targets that operations no longer knows; the next page-through says what stands in their place. */
export async function dropTargets(db: Queryable, keys: readonly string[]): Promise<void> {
  await sql`delete from allocation_targets t where ${keyOf} = any(${[...keys]}::text[])`.execute(db);
}

export interface TargetCounts {
  targets: number;
  unsupported: number;
  unmapped: number;
}

export async function countTargets(db: Queryable, clusterIds: readonly number[]): Promise<TargetCounts> {
  const { rows } = await sql<TargetCounts>`
    select count(*)::int as targets, count(*) filter (where not is_supported)::int as unsupported,
           count(*) filter (where is_supported and cluster_id <> all(${[...clusterIds]}::bigint[]))::int as unmapped
    from allocation_targets`.execute(db);
  return rows[0]!;
}

/**
 * The supported targets of these clusters that waited longest: all of them, or those that no visit of the feed has begun
 * for since then. A failed visit counts as a visit, so one that always fails goes to the end of the queue and starves no
 * other.
 */
export async function listDueTargets(
  db: Queryable,
  feed: string,
  clusterIds: readonly number[],
  limit: number,
  notVisitedSince: Date | null,
): Promise<StoredTarget[]> {
  const { rows } = await sql<StoredTarget>`
    select t.allocation_id as id, t.virtual_machine_id, t.cluster_id, host(t.address) as address, t.assigned_at,
           ${keyOf} as key, c.position
    from allocation_targets t left join feed_cursors c on c.feed = ${feed} and c.item = ${keyOf}
    where t.is_supported and t.cluster_id = any(${[...clusterIds]}::bigint[])
      and (${notVisitedSince}::timestamptz is null or c.last_visit_at is null or c.last_visit_at < ${notVisitedSince})
    order by c.last_visit_at nulls first, t.allocation_id
    limit ${limit}`.execute(db);
  return rows;
}

/** An allocation of a server's address. */
export interface Generation {
  allocationId: number;
  clusterId: number;
  serverId: number;
  /** Canonical text. */
  address: string;
  assignedAt: string;
}

export async function findClusters(
  db: Queryable,
  addresses: readonly string[],
): Promise<Map<string, number[]>> {
  const { rows } = await sql<{ address: string; clusters: number[] }>`
    select host(address) as address, array_agg(distinct cluster_id::float8) as clusters from allocation_targets
    where address = any(${[...addresses]}::inet[]) group by 1`.execute(db);
  return new Map(rows.map(({ address, clusters }) => [address, clusters]));
}

export async function listGenerations(
  db: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<Generation[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<Generation>`
    select t.allocation_id, t.cluster_id, t.virtual_machine_id as server_id, host(t.address) as address, t.assigned_at
    from allocation_targets t
    join (select distinct cluster_id, vm_id from unnest(${servers.map((one) => one.clusterId)}::bigint[],
      ${servers.map((one) => one.serverId)}::bigint[]) as g(cluster_id, vm_id)) s
      on s.cluster_id = t.cluster_id and s.vm_id = t.virtual_machine_id
    where t.is_supported`.execute(db);
  return rows;
}
