import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { SkippedUpload } from '#monitor/intake/index.ts';
import { isClockRight } from '#monitor/sensors/index.ts';
import { heldTerm } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An upload as it came. */
export interface UploadRow extends SkippedUpload {
  digest: Buffer;
  encoding: string;
  body: Uint8Array;
  /** The last minute that its minutes or gaps speak of. */
  throughMinute: number | null;
}

/** What became of an upload that was handed in. */
export interface UploadDecision {
  isStored: boolean;
  /** Finished so long ago that its tombstone is gone. */
  isCovered: boolean;
  /** Of the stored upload with this identity; null where there is none. */
  knownDigest: Buffer | null;
  /** All of its minutes are older than three months. */
  isOld: boolean;
  /** Why it is not stored: it speaks of a time that has not come. Null: it does not, or it is taken all the same. */
  ahead: 'wait' | 'refuse' | null;
}

/** How far ahead of the database's clock an upload may speak, and how far ahead its minutes may wait, seconds. */
export interface AheadBounds {
  toleratedSeconds: number;
  waitSeconds: number;
}

/**
 * Stores uploads of different identities that are neither known nor outside the window, and says of each what it found.
 *
 * One statement looks, judges by the database's clock and inserts. In the order of their identities, so that two
 * processes that store the same can not deadlock; the second one stores nothing and finds no
 * digest either, and asks again.
 */
export async function storeUploads(
  trx: Queryable,
  rows: readonly UploadRow[],
  ahead: AheadBounds,
): Promise<UploadDecision[]> {
  const all = <T>(read: (row: UploadRow) => T) => rows.map(read);
  // Bodies in one value: an array of them would travel as text, twice as long.
  const lengths = rows.map((row) => row.body.length);
  let end = 1;
  const starts = lengths.map((length) => {
    end += length;
    return end - length;
  });
  const result = await sql<UploadDecision>`
    with given as (
      select sensor_id, site_id, spool_id, sequence, digest, encoding, first_at, length, n,
        to_timestamp(first_minute) as first_minute, to_timestamp(last_minute) as last_minute,
        to_timestamp(through_minute) as through_minute
      from unnest(${all((row) => row.sensorId)}::bigint[], ${all((row) => row.siteId)}::bigint[],
        ${all((row) => row.spoolId)}::uuid[], ${all((row) => row.sequence)}::bigint[], ${all((row) => row.digest)}::bytea[],
        ${all((row) => row.encoding)}::text[], ${all((row) => row.firstMinute)}::float8[],
        ${all((row) => row.lastMinute)}::float8[], ${all((row) => row.throughMinute)}::float8[], ${starts}::int[],
        ${lengths}::int[]) with ordinality
        as given (sensor_id, site_id, spool_id, sequence, digest, encoding, first_minute, last_minute, through_minute, first_at,
          length, n)),
    judged as (
      select given.*, coalesce(p.covered_through >= given.sequence, false) as is_covered, u.digest as known_digest,
        coalesce(given.last_minute < svc_now() - ${sql.lit(kept.traffic)}::interval, false) as is_old,
        case when given.through_minute is null
            or given.through_minute <= svc_now() + make_interval(secs => ${ahead.toleratedSeconds}) then null
          -- The sensor's clock is right by now, so this upload keeps its wrong times for ever: an older sensor's.
          when ${isClockRight(sql`given.sensor_id`)} and given.last_minute is null then null
          when ${isClockRight(sql`given.sensor_id`)} and given.last_minute > svc_now() + make_interval(secs => ${ahead.waitSeconds}) then 'refuse'
          else 'wait' end as ahead
      from given
      left join inbox_spools p on p.sensor_id = given.sensor_id and p.spool_id = given.spool_id
      left join inbox_uploads u on u.sensor_id = given.sensor_id and u.spool_id = given.spool_id
        and u.sequence = given.sequence),
    stored as (
      insert into inbox_uploads (sensor_id, site_id, spool_id, sequence, digest, encoding, body, first_minute, last_minute)
      select sensor_id, site_id, spool_id, sequence, digest, encoding,
        substring(${Buffer.concat(rows.map((row) => row.body))}::bytea from first_at for length), first_minute, last_minute
      from judged where not is_covered and known_digest is null and not is_old and ahead is null
      order by sensor_id, spool_id, sequence
      on conflict (sensor_id, spool_id, sequence) do nothing
      returning sensor_id, spool_id, sequence)
    select s.sequence is not null as is_stored, is_covered, known_digest, is_old, ahead
    from judged left join stored s using (sensor_id, spool_id, sequence) order by n`.execute(trx);
  return result.rows;
}

/** An upload that waits for being applied, without its body. */
export interface PendingUpload extends Omit<UploadRow, 'encoding' | 'body' | 'throughMinute'> {
  id: number;
  /** The database's time. */
  nowMs: number;
}

/** Which of a share's due uploads: those that never failed, one that did, or a certain one. */
export type Pick =
  | { kind: 'fresh'; uploadsMax: number; bytesMax: number }
  | { kind: 'failed' }
  | { id: number };

/** Whether an upload may be applied, where another feature holds back what arrives. */
const isNotHeld = sql`not exists (select from inbox_holds where expires_at > svc_now() and inbox_uploads.id > through)`;

/** Uploads of one transaction, at most. */
export const batchMax = 64;

/**
 * Shares of the sensors in which something is due: an upload that failed before, one that has waited for others for `gatherMs`, or as
 * many as a batch holds.
 */
export async function findDueShares(db: Queryable, shares: number, gatherMs: number): Promise<number[]> {
  const due = sql`from inbox_uploads
    where state = 'pending' and due_at <= svc_now() and sensor_id % ${shares}::int = share and ${isNotHeld}`;
  const many =
    gatherMs === 0
      ? sql`false`
      : sql`(select count(*) from (select 1 ${due} limit ${batchMax}) as waiting) = ${batchMax}`;
  const { rows } = await sql<{ share: number }>`
    select share from generate_series(0, ${shares}::int - 1) as share
    where exists (select 1 ${due}
        and (attempts > 0 or due_at <= svc_now() - make_interval(secs => ${gatherMs / 1000}::float8)))
      or ${many}`.execute(db);
  return rows.map((row) => row.share);
}

/**
 * The oldest due uploads of a share, and in the same commit the note that they are about to be applied. Under the
 * lease's term: null when it is lost.
 */
export async function beginBatch(
  db: Queryable,
  of: { share: number; shares: number; leaseName: string; term: number },
  pick: Pick,
): Promise<PendingUpload[] | null> {
  const which =
    'id' in pick
      ? sql`id = ${pick.id}`
      : sql`due_at <= svc_now() and sensor_id % ${of.shares}::int = ${of.share}
          and attempts ${pick.kind === 'fresh' ? sql`= 0` : sql`> 0`}`;
  const uploadsMax = 'id' in pick || pick.kind === 'failed' ? 1 : pick.uploadsMax;
  const bytesMax = 'id' in pick || pick.kind === 'failed' ? 0 : pick.bytesMax;
  const { rows } = await sql<{ [Field in keyof PendingUpload]: PendingUpload[Field] | null }>`
    with held as (${heldTerm(of.leaseName, of.term)}),
    due as (
      select id, octet_length(body) as bytes from inbox_uploads
      where state = 'pending' and ${which} and ${isNotHeld} and exists (select 1 from held)
      order by ${'id' in pick || pick.kind === 'fresh' ? sql`id` : sql`attempts, id`} limit ${uploadsMax}),
    picked as (
      select id from (select id, bytes, sum(bytes) over (order by id) as so_far from due) sized
      where so_far <= ${bytesMax} or so_far = bytes),
    noted as (
      insert into inbox_attempts (share, term, upload_ids, began_at)
      select ${of.share}::int, ${of.term}::bigint, array_agg(id), svc_now() from picked having count(*) > 0
      on conflict (share) do update set term = excluded.term, upload_ids = excluded.upload_ids, began_at = excluded.began_at)
    select id, sensor_id, site_id, spool_id, sequence, digest,
      extract(epoch from first_minute)::float8 as first_minute, extract(epoch from last_minute)::float8 as last_minute,
      (extract(epoch from svc_now()) * 1000)::float8 as now_ms
    from held left join (inbox_uploads join picked using (id)) on true order by id`.execute(db);
  if (rows.length === 0) return null;
  return rows.filter((row): row is PendingUpload => row.id !== null);
}

/** What a sensor sent, and its `Content-Encoding`. */
export interface StoredBody {
  body: Buffer;
  encoding: string;
}

/** Bodies of uploads by their ids; those of finished ones are gone. */
export async function readBodies(db: Queryable, ids: readonly number[]): Promise<Map<number, StoredBody>> {
  const { rows } = await sql<StoredBody & { id: number }>`
    select id, body, encoding from inbox_uploads where id = any(${[...ids]}::bigint[])
      and body is not null`.execute(db);
  return new Map(rows.map(({ id, ...stored }) => [id, stored]));
}

/** Uploads that an earlier term of this share's lease was applying when it ended, and forgets that it did. */
export async function takeAbandoned(trx: Queryable, share: number, term: number): Promise<number[]> {
  const { rows } = await sql<{ ids: number[] }>`
    with old as (select upload_ids from inbox_attempts where share = ${share} and term < ${term} for update)
    update inbox_attempts set upload_ids = '{}', term = ${term} from old where share = ${share}
    returning old.upload_ids as ids`.execute(trx);
  return rows[0]?.ids ?? [];
}

/** Says that nothing of this share is being applied any more. */
export async function endAttempt(trx: Queryable, share: number, term: number): Promise<void> {
  await sql`update inbox_attempts set upload_ids = '{}' where share = ${share}
    and term = ${term}`.execute(trx);
}

/** Locks uploads for this transaction; returns those that have not been finished meanwhile. */
export async function lockUploads(trx: Queryable, ids: readonly number[]): Promise<Set<number>> {
  const { rows } = await sql<{ id: number }>`
    select id from inbox_uploads where id = any(${[...ids]}::bigint[])
      and state = 'pending' order by id for update`.execute(trx);
  return new Set(rows.map((row) => row.id));
}

/** What an upload is recognised by. */
export interface UploadIdentity {
  sensorId: number;
  spoolId: string;
  sequence: number;
}

/** Locks an upload for this transaction; null when it has been finished meanwhile. */
export async function lockPending(trx: Queryable, identity: UploadIdentity): Promise<PendingUpload | null> {
  const { rows } = await sql<PendingUpload>`
    select id, sensor_id, site_id, spool_id, sequence, digest,
      extract(epoch from first_minute)::float8 as first_minute, extract(epoch from last_minute)::float8 as last_minute,
      (extract(epoch from svc_now()) * 1000)::float8 as now_ms
    from inbox_uploads
    where sensor_id = ${identity.sensorId} and spool_id = ${identity.spoolId} and sequence = ${identity.sequence}
      and state = 'pending' for update`.execute(trx);
  return rows[0] ?? null;
}

/** Ends uploads; what remains are the tombstones that recognise redeliveries. */
export async function finishUploads(trx: Queryable, ids: readonly number[], state: 'applied' | 'rejected') {
  await sql`update inbox_uploads set state = ${state}, body = null, finished_at = svc_now()
    where id = any(${[...ids]}::bigint[]) and state = 'pending'`.execute(trx);
}

/** An upload after one more attempt at it. */
export interface FailedUpload extends Omit<PendingUpload, 'digest' | 'nowMs'> {
  attempts: number;
}

/** Counts an attempt at pending uploads and puts the next one off, longer each time. */
export async function countAttempts(
  trx: Queryable,
  ids: readonly number[],
  error: string,
  retrySeconds: number,
): Promise<FailedUpload[]> {
  const { rows } = await sql<FailedUpload>`
    update inbox_uploads set attempts = attempts + 1, last_error = ${error},
      due_at = svc_now() + make_interval(secs => ${retrySeconds}::float8 * power(2, attempts))
    where id = any(${[...ids]}::bigint[]) and state = 'pending'
    returning id, sensor_id, site_id, spool_id, sequence, attempts,
      extract(epoch from first_minute)::float8 as first_minute,
      extract(epoch from last_minute)::float8 as last_minute`.execute(trx);
  return rows;
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
            or u.finished_at < svc_now() - ${sql.lit(kept.traffic)}::interval - interval '1 day')
        returning 1)
      select count(*)::int as pruned from gone`.execute(trx);
    return rows[0]!.pruned;
  });
}

/** An upload that was applied, while its number is kept (two days, NET-8). */
export interface KeptUpload extends UploadIdentity {
  firstMinute: number;
  lastMinute: number;
}

/** By the key of uploads, which begins with the sensor: a few thousand numbers of each sensor are looked through. */
export async function listKeptUploads(
  db: Queryable,
  sensorIds: readonly number[],
  fromMinute: number,
  toMinute: number,
): Promise<KeptUpload[]> {
  const { rows } = await sql<KeptUpload>`
    select sensor_id, spool_id, sequence, extract(epoch from first_minute)::float8 as first_minute,
      extract(epoch from last_minute)::float8 as last_minute
    from inbox_uploads
    where sensor_id = any(${[...sensorIds]}::bigint[]) and state = 'applied'
      and first_minute < to_timestamp(${toMinute}) and last_minute >= to_timestamp(${fromMinute})
    order by sensor_id, spool_id, sequence limit 1000`.execute(db);
  return rows;
}

/** How the inbox stands. */
export interface InboxState {
  /** Uploads that wait for being applied, and how long the oldest has. */
  pending: number;
  oldestSeconds: number | null;
  /** Those that have failed before and are tried again. */
  failing: number;
  /** Of those that were finished in the last hour. */
  appliedLastHour: number;
  rejectedLastHour: number;
}

export async function readInboxState(db: Queryable): Promise<InboxState> {
  const { rows } = await sql<InboxState>`
    select count(*)::int as pending, count(*) filter (where attempts > 0)::int as failing,
      extract(epoch from svc_now() - min(received_at))::float8 as oldest_seconds,
      (select count(*)::int from inbox_uploads where state <> 'pending' and state = 'applied'
        and finished_at > svc_now() - interval '1 hour') as applied_last_hour,
      (select count(*)::int from inbox_uploads where state <> 'pending' and state = 'rejected'
        and finished_at > svc_now() - interval '1 hour') as rejected_last_hour
    from inbox_uploads where state = 'pending'`.execute(db);
  return rows[0]!;
}

/** Holds every upload. */
export async function beginHold(db: Queryable, id: string, seconds: number): Promise<void> {
  await sql`insert into inbox_holds (id, through, expires_at)
    values (${id}::uuid, 0, svc_now() + make_interval(secs => ${seconds}))
    on conflict (is_only) do update
    set id = excluded.id, through = excluded.through, expires_at = excluded.expires_at`.execute(db);
}

/** Lets pass what has a number by now; a number is given before its upload is stored. */
export async function openHold(db: Queryable, id: string): Promise<void> {
  await sql`update inbox_holds
    set through = coalesce(pg_sequence_last_value(pg_get_serial_sequence('inbox_uploads', 'id')::regclass), 0)
    where id = ${id}::uuid`.execute(db);
}

export async function renewHold(db: Queryable, id: string, seconds: number): Promise<boolean> {
  const { rows } = await sql`update inbox_holds set expires_at = svc_now() + make_interval(secs => ${seconds})
    where id = ${id}::uuid and expires_at > svc_now() returning 1`.execute(db);
  return rows.length === 1;
}

/** Whether the hold lasts; it stays so until the end of the transaction. */
export async function lockHold(trx: Queryable, id: string): Promise<boolean> {
  const { rows } = await sql`select 1 from inbox_holds where id = ${id}::uuid
      and expires_at > svc_now() for update`.execute(trx);
  return rows.length === 1;
}

export async function countBefore(db: Queryable, id: string): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from inbox_uploads u join inbox_holds h on u.id <= h.through
    where h.id = ${id}::uuid and u.state = 'pending'`.execute(db);
  return rows[0]!.waiting;
}

export async function endHold(db: Queryable, id: string): Promise<void> {
  await sql`delete from inbox_holds where id = ${id}::uuid`.execute(db);
}
