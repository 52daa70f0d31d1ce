import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Session, SessionSummary } from './session.ts';

export interface NewSession {
  digest: Buffer;
  personId: number;
  csrfToken: string;
  absoluteHours: number;
  hasSecondFactor: boolean;
  /** Absent: now. */
  authenticatedAtMs?: number;
  identityId?: number;
  source: string | null;
  userAgent: string | null;
}

export async function insertSession(db: Queryable, session: NewSession): Promise<void> {
  await sql`delete from sessions where expires_at < svc_now()`.execute(db);
  const { hasSecondFactor, authenticatedAtMs, identityId = null } = session;
  const provedAt = authenticatedAtMs === undefined ? null : authenticatedAtMs / 1000;
  // A clock that runs ahead must not make a session that is confirmed, or lives, longer than any other.
  await sql`
    insert into sessions (digest, person_id, csrf_token, authenticated_at, second_factor_at, expires_at, source, user_agent,
      identity_id, identity_checked_at)
    select ${session.digest}, ${session.personId}, ${session.csrfToken}, proved.at,
      case when ${hasSecondFactor} then proved.at end, proved.at + make_interval(hours => ${session.absoluteHours}),
      ${session.source}, ${session.userAgent}, ${identityId}::bigint, case when ${identityId}::bigint is not null then svc_now() end
    from (select least(svc_now(), coalesce(to_timestamp(${provedAt}::float8), svc_now())) as at) proved`.execute(
    db,
  );
}

/** A live session; its last use is noted at most once a minute, so that reading pages does not write rows. */
export async function findSession(
  db: Queryable,
  digest: Buffer,
  idleHours: number,
  isActivity: boolean,
): Promise<Session | null> {
  const { rows } = await sql<Session & { isStaleNote: boolean }>`
    select id, person_id, csrf_token, authenticated_at > svc_now() - interval '15 minutes' as is_confirmed,
           (extract(epoch from authenticated_at) * 1000)::float8 as authenticated_at_ms,
           second_factor_at is not null as has_second_factor, identity_id,
           coalesce(identity_checked_at < svc_now() - interval '1 hour', false) as is_check_due,
           last_seen_at < svc_now() - interval '1 minute' as is_stale_note
    from sessions
    where digest = ${digest} and expires_at > svc_now()
      and last_seen_at > svc_now() - make_interval(hours => ${idleHours})`.execute(db);
  const found = rows[0];
  if (!found) return null;
  if (found.isStaleNote && isActivity)
    await sql`update sessions set last_seen_at = svc_now() where digest = ${digest}`.execute(db);
  const { isStaleNote: _, ...session } = found;
  return session;
}

export async function isLiveSession(db: Queryable, sessionId: string, idleHours: number): Promise<boolean> {
  const { rows } = await sql`
    select 1 from sessions where id = ${sessionId}::uuid and expires_at > svc_now()
      and last_seen_at > svc_now() - make_interval(hours => ${idleHours})`.execute(db);
  return rows.length > 0;
}

/** Gives a session a new secret and a new time of authentication; the seconds it may still live, null for none. */
export async function renewSession(
  db: Queryable,
  old: Buffer,
  fresh: Buffer,
  hasSecondFactor: boolean,
): Promise<number | null> {
  const { rows } = await sql<{ seconds: number }>`
    update sessions set digest = ${fresh}, authenticated_at = svc_now(), last_seen_at = svc_now(),
      second_factor_at = case when ${hasSecondFactor} then svc_now() else second_factor_at end,
      identity_checked_at = case when identity_id is not null then svc_now() end
    where digest = ${old} and expires_at > svc_now()
    returning floor(extract(epoch from expires_at - svc_now()))::int as seconds`.execute(db);
  return rows[0]?.seconds ?? null;
}

/** False when the person has no such session. */
export async function deleteSessionOf(db: Queryable, personId: number, sessionId: string): Promise<boolean> {
  const { rows } = await sql`
    delete from sessions where person_id = ${personId} and id = ${sessionId}::uuid returning 1`.execute(db);
  return rows.length === 1;
}

export async function deleteSession(db: Queryable, digest: Buffer): Promise<void> {
  await sql`delete from sessions where digest = ${digest}`.execute(db);
}

/** Ends a person's sessions, but this one. */
export async function deleteSessionsOf(
  db: Queryable,
  personId: number,
  but: Buffer | null = null,
): Promise<void> {
  await sql`delete from sessions where person_id = ${personId}
    and digest is distinct from ${but}`.execute(db);
}

export async function listSessions(
  db: Queryable,
  personId: number,
  current: Buffer | null,
  idleHours: number,
): Promise<SessionSummary[]> {
  const { rows } = await sql<SessionSummary>`
    select id, created_at as started_at, last_seen_at, source, user_agent,
      digest is not distinct from ${current} as is_current
    from sessions
    where person_id = ${personId} and expires_at > svc_now()
      and last_seen_at > svc_now() - make_interval(hours => ${idleHours})
    order by last_seen_at desc`.execute(db);
  return rows;
}

export async function insertDevice(
  db: Queryable,
  digest: Buffer,
  emailDigest: string,
  days: number,
): Promise<void> {
  await sql`delete from known_devices
    where created_at < svc_now() - make_interval(days => ${days})`.execute(db);
  await sql`insert into known_devices (digest, email_digest) values (${digest}, ${emailDigest})`.execute(db);
}

export async function hasDevice(
  db: Queryable,
  digest: Buffer,
  emailDigest: string,
  days: number,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from known_devices where digest = ${digest} and email_digest = ${emailDigest}
      and created_at > svc_now() - make_interval(days => ${days})`.execute(db);
  return rows.length === 1;
}

export async function deleteDevices(db: Queryable, emailDigest: string): Promise<void> {
  await sql`delete from known_devices where email_digest = ${emailDigest}`.execute(db);
}

/**
 * Counts an attempt in each bucket, unless one of them holds its limit of the last ten minutes already. Returns the
 * window that it was counted in, or null. The rows stay locked until that is decided, in one order: attempts at the same
 * moment see each other, and don't deadlock.
 */
export async function takeAttempt(
  db: Queryable,
  limits: Readonly<Record<string, number>>,
): Promise<Date | null> {
  const buckets = Object.keys(limits).sort();
  await sql`delete from sign_in_failures where window_start < svc_now() - interval '1 hour'`.execute(db);
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ window: Date }>`
      insert into sign_in_failures as kept (bucket, window_start, failures)
      select bucket, date_trunc('minute', svc_now()), 0 from unnest(${buckets}::text[]) as bucket order by bucket
      on conflict (bucket, window_start) do update set failures = kept.failures
      returning window_start as window`.execute(tx);
    const { window } = rows[0]!;
    const counts = await countFailures(tx, buckets);
    if (buckets.some((bucket) => (counts.get(bucket) ?? 0) >= limits[bucket]!)) return null;
    await sql`update sign_in_failures set failures = failures + 1
      where bucket = any(${buckets}) and window_start = ${window}`.execute(tx);
    return window;
  });
}

/** Takes an attempt back that was no failure. */
export async function giveBack(db: Queryable, buckets: readonly string[], window: Date): Promise<void> {
  await sql`update sign_in_failures set failures = failures - 1
    where (bucket, window_start) in (
      select bucket, window_start from sign_in_failures
      where bucket = any(${[...buckets]}) and window_start = ${window} and failures > 0
      order by bucket for update)`.execute(db);
}

/** The failures of the last ten minutes, by bucket. */
async function countFailures(db: Queryable, buckets: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await sql<{ bucket: string; total: number }>`
    select bucket, sum(failures)::int as total from sign_in_failures
    where bucket = any(${[...buckets]}) and window_start > svc_now() - interval '10 minutes'
    group by bucket`.execute(db);
  return new Map(rows.map((row) => [row.bucket, row.total]));
}
