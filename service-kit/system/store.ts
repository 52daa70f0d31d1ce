/** Samples of disks, the size of the database, and whether it takes writes. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A disk as its newest sample says, with how it changed since an earlier one. */
export interface DiskState {
  host: string;
  /** A folder on the disk. */
  path: string;
  freeBytes: number;
  totalBytes: number;
  ageSeconds: number;
  /** Between the first sample of six hours and the newest. */
  observedSeconds: number;
  /** Free bytes that were lost in that time; negative where space was freed. */
  lostBytes: number;
}

/** Stores one sample a minute, and deletes those of six hours ago. Several processes of a machine store one together. */
export async function insertDiskSample(
  db: Queryable,
  sample: Pick<DiskState, 'host' | 'path' | 'freeBytes' | 'totalBytes'>,
): Promise<void> {
  await sql`
    with expired as (delete from disk_samples where at < svc_now() - interval '6 hours')
    insert into disk_samples (host, path, at, free_bytes, total_bytes)
    values (${sample.host}, ${sample.path}, date_trunc('minute', svc_now()), ${sample.freeBytes}, ${sample.totalBytes})
    on conflict (host, path, at) do update
    set free_bytes = excluded.free_bytes, total_bytes = excluded.total_bytes`.execute(db);
}

export async function listDisks(db: Queryable): Promise<DiskState[]> {
  const { rows } = await sql<DiskState>`
    select newest.host, newest.path, newest.free_bytes, newest.total_bytes,
      extract(epoch from svc_now() - newest.at)::float8 as age_seconds,
      extract(epoch from newest.at - first.at)::float8 as observed_seconds, first.free_bytes - newest.free_bytes as lost_bytes
    from (select distinct on (host, path) * from disk_samples order by host, path, at desc) newest
    join (select distinct on (host, path) * from disk_samples order by host, path, at) first
      on first.host = newest.host and first.path = newest.path
    order by newest.host, newest.path`.execute(db);
  return rows;
}

export async function readDatabaseBytes(db: Queryable): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_database_size(current_database()) as bytes`.execute(db);
  return rows[0]!.bytes;
}

/**
 * Commits a small write that needs a new block of the disk. A temporary table is the one that no other session waits for, a
 * running backup least of all.
 */
export async function writeOnce(db: Queryable): Promise<void> {
  await sql`create temporary table svc_write_check on commit drop as select 1 as written`.execute(db);
}
