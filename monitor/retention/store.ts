import { sql } from 'kysely';
import type { Period } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { KeptTable } from './index.ts';

/** The moment before which rows are older than this; whole milliseconds. */
export async function readCutoffMs(db: Queryable, keptFor: Period): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select floor(extract(epoch from svc_now() - ${keptFor}::interval) * 1000)::float8 as ms`.execute(db);
  return rows[0]!.ms;
}

/** Partitions of which every row is from before this moment. */
export async function listExpiredPartitions(db: Queryable, kept: KeptTable, beforeMs: number) {
  const { rows } = await sql<{ name: string }>`
    select part.relname as name from pg_inherits i join pg_class part on part.oid = i.inhrelid
    where i.inhparent = to_regclass(${kept.table})
      and (regexp_match(pg_get_expr(part.relpartbound, part.oid), 'TO \\(''([^'']+)''\\)'))[1]::timestamptz
        <= to_timestamp(${beforeMs}::float8 / 1000)
    order by 1`.execute(db);
  return rows.map((row) => row.name);
}

/** Drops one partition; gives up after a few seconds behind readers, because the next run follows in an hour. */
export async function dropPartition(db: Queryable, name: string): Promise<void> {
  await sql`set local lock_timeout = '5s'`.execute(db);
  await sql`drop table if exists ${sql.table(name)}`.execute(db);
}

/** Deletes the rows of a table from before this moment, or of a partitioned one's boundary. */
export async function deleteExpired(db: Queryable, kept: KeptTable, beforeMs: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from ${sql.table(kept.table)}
    where ${sql.ref(kept.column)} < to_timestamp(${beforeMs}::float8 / 1000)
      and ${sql.raw(kept.only ?? 'true')}`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** The last run of any process. */
export interface MaintenanceState {
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  lastError: string | null;
  /** Removed rows by table. */
  lastCounts: Readonly<Record<string, number>>;
  lastSeconds: number | null;
}

export async function readState(db: Queryable): Promise<MaintenanceState> {
  const { rows } = await sql<MaintenanceState>`
    select (extract(epoch from last_run_at) * 1000)::float8 as last_run_at_ms,
      (extract(epoch from last_success_at) * 1000)::float8 as last_success_at_ms, last_error, last_counts,
      last_seconds from maintenance_state`.execute(db);
  return rows[0]!;
}

export async function writeState(
  db: Queryable,
  run: { error: string | null; counts: Readonly<Record<string, number>>; seconds: number },
): Promise<void> {
  await sql`update maintenance_state set last_run_at = svc_now(), last_error = ${run.error},
    last_success_at = case when ${run.error}::text is null then svc_now() else last_success_at end,
    last_counts = ${JSON.stringify(run.counts)}::jsonb, last_seconds = ${run.seconds}`.execute(db);
}
