/** Every statement on changes of servers. */
import { sql } from 'kysely';
import { serverChangeRow } from '#operations/views/event-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Readers that were away for longer miss changes. */
const keptDays = 30;

export interface StoredChange {
  id: string;
  clusterId: number;
  serverId: number;
  kind: string;
  occurredAt: Date;
}

export async function insertChange(tx: Queryable, serverId: number, kind: string): Promise<void> {
  await sql`insert into server_changes (cluster_id, server_id, kind) ${serverChangeRow(serverId, kind)}`.execute(
    tx,
  );
}

/** One look into an index that has only changes without a position: most readings find none and write nothing. */
export async function hasUnnumbered(db: Queryable): Promise<boolean> {
  const { rows } = await sql`select 1 from server_changes where position is null limit 1`.execute(db);
  return rows.length > 0;
}

/** Until the transaction ends, so positions are visible in their order. */
export async function lockNumbering(tx: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318090)`.execute(tx);
}

/** Gives the oldest changes without a position the next ones. Call it under `lockNumbering`. */
export async function numberChanges(tx: Queryable, limit: number): Promise<void> {
  await sql`
    with waiting as (
      select id, occurred_at from server_changes where position is null order by occurred_at, id limit ${limit}),
    numbered as (
      select id, nextval('server_change_positions') as position
      from (select id from waiting order by occurred_at, id) ordered)
    update server_changes c set position = n.position from numbered n where c.id = n.id`.execute(tx);
}

/** The highest position that was ever given, also where its change is deleted. */
export async function lastPosition(db: Queryable): Promise<number> {
  const { rows } = await sql<{ position: number }>`
    select last_value as position from server_change_positions`.execute(db);
  return rows[0]!.position;
}

/** The last of the next positions, and how many there are; null where there is none. */
export async function walkPositions(
  db: Queryable,
  after: number,
  limit: number,
): Promise<{ last: number | null; walked: number }> {
  const { rows } = await sql<{ last: number | null; walked: number }>`
    select max(position) as last, count(*)::int as walked from (
      select position from server_changes where position > ${after} order by position limit ${limit}) next`.execute(
    db,
  );
  return rows[0]!;
}

export async function listBetween(
  db: Queryable,
  query: { after: number; upTo: number; clusterIds?: readonly number[] | undefined },
): Promise<StoredChange[]> {
  const inClusters =
    query.clusterIds === undefined ? sql`true` : sql`cluster_id = any(${[...query.clusterIds]}::bigint[])`;
  const { rows } = await sql<StoredChange>`
    select id, cluster_id, server_id, kind, occurred_at
    from server_changes where position > ${query.after} and position <= ${query.upTo} and ${inClusters}
    order by position`.execute(db);
  return rows;
}

/** Deletes changes that are older than 30 days, at most so many; returns how many. */
export async function deleteExpired(tx: Queryable, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from server_changes where id in (
      select id from server_changes where occurred_at < svc_now() - make_interval(days => ${keptDays})
      order by occurred_at limit ${limit})`.execute(tx);
  return Number(numAffectedRows ?? 0);
}
