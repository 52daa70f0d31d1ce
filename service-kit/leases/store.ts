import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/**
 * Takes a lease, or takes up the own one again; returns its term, or null while another process holds it.
 *
 * One statement decides: who comes back in time keeps the term, a take-over of an expired lease raises it, so two
 * processes can never hold the same term. It never waits: a row that a fenced transaction locks is held by definition,
 * and the one who asks has better things to do than to hang behind a holder that froze in the middle of it.
 */
export async function takeLease(
  db: Queryable,
  name: string,
  holder: string,
  ttlSeconds: number,
): Promise<number | null> {
  const { rows } = await sql<{ term: number }>`
    with made as (
      insert into leases (name, holder, term, acquired_at, expires_at)
      select ${name}, ${holder}, 1, svc_now(), svc_now() + make_interval(secs => ${ttlSeconds})
      where not exists (select 1 from leases where name = ${name})
      on conflict (name) do nothing returning term),
    free as (
      select name, holder = ${holder} and expires_at > svc_now() as is_own from leases
      where name = ${name} and (holder = ${holder} or expires_at <= svc_now())
      for no key update skip locked),
    taken as (
      update leases held set
        term = case when is_own then term else term + 1 end,
        acquired_at = case when is_own then acquired_at else svc_now() end,
        holder = ${holder},
        expires_at = svc_now() + make_interval(secs => ${ttlSeconds})
      from free where held.name = free.name
      returning term)
    select term from made union all select term from taken`.execute(db);
  return rows[0]?.term ?? null;
}

/**
 * Renews this term only: an expired term, or one with a successor, is not taken again. False when it
 * is lost.
 */
export async function renewTerm(
  db: Queryable,
  lease: { name: string; holder: string; term: number },
  ttlSeconds: number,
): Promise<boolean> {
  const { rows } = await sql`
    update leases set expires_at = svc_now() + make_interval(secs => ${ttlSeconds})
    where name = ${lease.name} and holder = ${lease.holder} and term = ${lease.term} and expires_at > svc_now()
    returning 1`.execute(db);
  return rows.length === 1;
}

/** Gives a term back, so that the next holder need not wait for it to run out; a later term is left alone. */
export async function releaseTerm(
  db: Queryable,
  lease: { name: string; holder: string; term: number },
): Promise<void> {
  await sql`update leases set expires_at = least(expires_at, svc_now()),
      interval_seconds = null, succeeded_at = null, failing_since = null, last_error = null
    where name = ${lease.name} and holder = ${lease.holder} and term = ${lease.term}`.execute(db);
}

/**
 * True when this term is still the lease's. Inside a transaction the row stays locked until its end, so no process can
 * take over between this check and the commit; a process that freezes there is cut off when it has been silent for a
 * minute, or its follower would wait for it without end.
 */
export async function holdsTerm(db: Queryable, name: string, term: number): Promise<boolean> {
  const { rows } = await sql`
    select case when current_setting('idle_in_transaction_session_timeout') = '0'
      then set_config('idle_in_transaction_session_timeout', '60s', true) end from leases
    where name = ${name} and term = ${term} and expires_at > svc_now() for share`.execute(db);
  return rows.length === 1;
}

/** Stores how a run of a loop ended; a term that has passed stores nothing. `error`: null where it succeeded. */
export async function noteOutcome(
  db: Queryable,
  lease: { name: string; holder: string; term: number },
  intervalSeconds: number,
  error: string | null,
): Promise<void> {
  await sql`update leases set interval_seconds = ${intervalSeconds}, last_error = ${error}::text,
      succeeded_at = case when ${error}::text is null then svc_now() else succeeded_at end,
      failing_since = case when ${error}::text is not null then coalesce(failing_since, svc_now()) end
    where name = ${lease.name} and holder = ${lease.holder} and term = ${lease.term}`.execute(db);
}

/** A lease as it stands, for people. */
export interface LeaseState {
  name: string;
  holder: string;
  term: number;
  isHeld: boolean;
  acquiredAtMs: number;
  expiresAtMs: number;
  /** Between runs; null: no loop runs under this lease, or it was stopped in order. */
  intervalSeconds: number | null;
  succeededAtMs: number | null;
  failingSinceMs: number | null;
  lastError: string | null;
}

export async function listLeases(db: Queryable): Promise<LeaseState[]> {
  const { rows } = await sql<LeaseState>`
    select name, holder, term, expires_at > svc_now() as is_held,
      (extract(epoch from acquired_at) * 1000)::float8 as acquired_at_ms,
      (extract(epoch from expires_at) * 1000)::float8 as expires_at_ms, interval_seconds,
      (extract(epoch from succeeded_at) * 1000)::float8 as succeeded_at_ms,
      (extract(epoch from failing_since) * 1000)::float8 as failing_since_ms, last_error
    from leases order by name`.execute(db);
  return rows;
}

/**
 * For statements of other features: one row while this term is the lease's, which stays locked until the end of the
 * transaction; no row after that.
 */
export const heldTerm = (name: string, term: number): RawBuilder<unknown> =>
  sql`select 1 from leases where name = ${name} and term = ${term} and expires_at > svc_now() for share`;

/**
 * Records the lease and term of this transaction, for observers of the tables and for the process that must end it,
 * and makes the server end it when its client says nothing for so long.
 */
export async function nameTerm(
  trx: Queryable,
  lease: { name: string; term: number },
  idleSeconds: number,
): Promise<void> {
  await sql`select set_config('application_name', ${`${lease.name} term ${lease.term}`}, true),
    set_config('svc.lease', ${lease.name}, true), set_config('svc.lease_term', ${String(lease.term)}, true),
    set_config('idle_in_transaction_session_timeout', ${`${idleSeconds}s`}, true)`.execute(trx);
}

/**
 * Ends the session that still holds a lease whose time has been over for as long again. The server does that by itself
 * where a client falls silent between two statements, but not in the middle of a COPY: there it waits without end.
 */
export async function cutPastHolder(db: Queryable, leaseName: string, ttlSeconds: number): Promise<void> {
  await sql`select pg_terminate_backend(session.pid) from leases l
    join pg_stat_activity session on session.application_name = l.name || ' term ' || l.term
      and session.datname = current_database()
    where l.name = ${leaseName}
      and l.expires_at < svc_now() - make_interval(secs => ${ttlSeconds})`.execute(db);
}
