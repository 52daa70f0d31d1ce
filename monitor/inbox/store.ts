import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface UploadRow {
  sensorId: number;
  siteId: number;
  spoolId: string;
  sequence: number;
  digest: Buffer;
  encoding: string;
  body: Uint8Array;
  /** Seconds since 1970; null for an upload of gaps alone. */
  firstMinute: number | null;
  lastMinute: number | null;
}

export interface PendingUpload {
  id: number;
  sensorId: number;
  siteId: number;
  spoolId: string;
  sequence: number;
  encoding: string;
  body: Buffer;
  firstMinute: number | null;
  lastMinute: number | null;
  /** The database's time. */
  nowMs: number;
}

export interface KnownUpload {
  /** Finished so long ago that its tombstone is gone. */
  isCovered: boolean;
  /** Of the stored upload with this identity; null where there is none. */
  digest: Buffer | null;
  /** Minutes before this are older than three months. */
  oldestSecond: number;
  nowSecond: number;
}

/** What is known of an upload's identity, and the bounds of its minutes by the database's clock. */
export async function findKnown(
  db: Queryable,
  sensorId: number,
  upload: { spoolId: string; sequence: number },
): Promise<KnownUpload> {
  const { rows } = await sql<KnownUpload>`
    select coalesce((select covered_through >= ${upload.sequence} from inbox_spools
        where sensor_id = ${sensorId} and spool_id = ${upload.spoolId}), false) as "isCovered",
      (select digest from inbox_uploads
        where sensor_id = ${sensorId} and spool_id = ${upload.spoolId} and sequence = ${upload.sequence}) as digest,
      extract(epoch from svc_now() - interval '3 months')::float8 as "oldestSecond",
      extract(epoch from svc_now())::float8 as "nowSecond"`.execute(db);
  return rows[0]!;
}

/** False when an upload of this identity is stored already. */
export async function insertUpload(trx: Queryable, row: UploadRow): Promise<boolean> {
  const { rows } = await sql`
    insert into inbox_uploads (sensor_id, site_id, spool_id, sequence, digest, encoding, body, first_minute, last_minute)
    values (${row.sensorId}, ${row.siteId}, ${row.spoolId}, ${row.sequence}, ${row.digest}, ${row.encoding},
      ${Buffer.from(row.body)}, to_timestamp(${row.firstMinute}::float8), to_timestamp(${row.lastMinute}::float8))
    on conflict (sensor_id, spool_id, sequence) do nothing returning 1`.execute(trx);
  return rows.length === 1;
}

/** Shares of the sensors in which something is due. */
export async function findDueShares(db: Queryable, shares: number): Promise<number[]> {
  const { rows } = await sql<{ share: number }>`
    select distinct (sensor_id % ${shares}::int)::int as share from inbox_uploads
    where state = 'pending' and due_at <= svc_now()`.execute(db);
  return rows.map((row) => row.share);
}

/** The oldest due upload of a share. */
export async function findNext(db: Queryable, share: number, shares: number): Promise<PendingUpload | null> {
  const { rows } = await sql<PendingUpload>`
    select id, sensor_id as "sensorId", site_id as "siteId", spool_id as "spoolId", sequence, encoding, body,
      extract(epoch from first_minute)::float8 as "firstMinute", extract(epoch from last_minute)::float8 as "lastMinute",
      (extract(epoch from svc_now()) * 1000)::float8 as "nowMs"
    from inbox_uploads
    where state = 'pending' and due_at <= svc_now() and sensor_id % ${shares}::int = ${share}
    order by id limit 1`.execute(db);
  return rows[0] ?? null;
}

/** Makes the server end this transaction when its client says nothing for so long. */
export async function limitIdling(trx: Queryable, seconds: number): Promise<void> {
  await sql`select set_config('idle_in_transaction_session_timeout', ${`${seconds}s`}, true)`.execute(trx);
}

/** Locks a pending upload for this transaction; false when it has been finished meanwhile. */
export async function lockUpload(trx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`
    select 1 from inbox_uploads where id = ${id} and state = 'pending' for update`.execute(trx);
  return rows.length === 1;
}

/** Ends an upload; what remains is the tombstone that recognises redeliveries. */
export async function finishUpload(trx: Queryable, id: number, state: 'applied' | 'rejected'): Promise<void> {
  await sql`update inbox_uploads set state = ${state}, body = null, finished_at = svc_now()
    where id = ${id} and state = 'pending'`.execute(trx);
}

/** Counts an attempt and puts the next one off, longer each time. Returns how many there were. */
export async function countAttempt(
  trx: Queryable,
  id: number,
  error: string,
  retrySeconds: number,
): Promise<number> {
  const { rows } = await sql<{ attempts: number }>`
    update inbox_uploads set attempts = attempts + 1, last_error = ${error},
      due_at = svc_now() + make_interval(secs => ${retrySeconds}::float8 * power(2, attempts))
    where id = ${id} and state = 'pending' returning attempts`.execute(trx);
  return rows[0]?.attempts ?? 0;
}

/**
 * Moves every spool's covered number over the finished uploads that follow it without a hole, then forgets covered
 * tombstones of more than two days, and any older than the retention window: what they hold would be refused today.
 */
export async function pruneUploads(db: Queryable): Promise<number> {
  return db.transaction().execute(async (trx) => {
    await sql`insert into inbox_spools (sensor_id, spool_id)
      select distinct sensor_id, spool_id from inbox_uploads on conflict do nothing`.execute(trx);
    await sql`
      update inbox_spools s set covered_through = run.last
      from (select sensor_id, spool_id, max(sequence) as last
        from (select u.sensor_id, u.spool_id, u.sequence, p.covered_through,
            row_number() over (partition by u.sensor_id, u.spool_id order by u.sequence) as place,
            bool_and(u.state <> 'pending') over (partition by u.sensor_id, u.spool_id order by u.sequence) as is_finished
          from inbox_uploads u join inbox_spools p using (sensor_id, spool_id)
          where u.sequence > p.covered_through) ordered
        where is_finished and sequence = covered_through + place
        group by sensor_id, spool_id) run
      where s.sensor_id = run.sensor_id and s.spool_id = run.spool_id`.execute(trx);
    const { rows } = await sql<{ pruned: number }>`
      with gone as (delete from inbox_uploads u using inbox_spools s
        where s.sensor_id = u.sensor_id and s.spool_id = u.spool_id and u.state <> 'pending'
          and ((u.sequence <= s.covered_through and u.finished_at < svc_now() - interval '2 days')
            or u.finished_at < svc_now() - interval '3 months' - interval '1 day')
        returning 1)
      select count(*)::int as pruned from gone`.execute(trx);
    return rows[0]!.pruned;
  });
}
