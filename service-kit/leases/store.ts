import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/**
 * Takes or renews a lease; returns its term, or null while somebody else holds it.
 *
 * One statement decides: a renewal keeps the term, a take-over of an expired lease raises it, so two processes can
 * never hold the same term.
 */
export async function takeLease(
  db: Queryable,
  name: string,
  holder: string,
  ttlSeconds: number,
): Promise<number | null> {
  const { rows } = await sql<{ term: number }>`
    insert into leases as held (name, holder, term, acquired_at, expires_at)
    values (${name}, ${holder}, 1, svc_now(), svc_now() + make_interval(secs => ${ttlSeconds}))
    on conflict (name) do update set
      term = case when held.holder = ${holder} and held.expires_at > svc_now() then held.term else held.term + 1 end,
      acquired_at = case when held.holder = ${holder} and held.expires_at > svc_now() then held.acquired_at else svc_now() end,
      holder = ${holder},
      expires_at = excluded.expires_at
    where held.holder = ${holder} or held.expires_at <= svc_now()
    returning term`.execute(db);
  return rows[0]?.term ?? null;
}

/**
 * Renews this term and no other: one that ran out, or that somebody else followed, is not taken anew by it. False when it
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
  await sql`update leases set expires_at = svc_now()
    where name = ${lease.name} and holder = ${lease.holder} and term = ${lease.term}
      and expires_at > svc_now()`.execute(db);
}

/**
 * True when this term is still the lease's. Inside a transaction the row stays locked until its end, so nobody can
 * take over between this check and the commit.
 */
export async function holdsTerm(db: Queryable, name: string, term: number): Promise<boolean> {
  const { rows } = await sql`
    select 1 from leases where name = ${name} and term = ${term} and expires_at > svc_now() for share`.execute(
    db,
  );
  return rows.length === 1;
}
