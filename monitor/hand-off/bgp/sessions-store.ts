/** How the sessions with BGP peers go: said by the process that holds them, read by pages of any. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ToldSession {
  peer: string;
  /** Null: established. */
  problem: string | null;
  /** Announced now. */
  routes: number;
}

/** A session as its process said it last. */
export interface StoredSession extends ToldSession {
  sinceMs: number;
  toldAgeSeconds: number;
}

/** These are all sessions. What was said before keeps its time where it is still so. */
export async function noteSessions(trx: Queryable, sessions: readonly ToldSession[]): Promise<void> {
  await sql`delete from bgp_sessions where peer <> all(${sessions.map(({ peer }) => peer)}::text[])`.execute(
    trx,
  );
  await sql`
    insert into bgp_sessions as held (peer, problem, routes)
    select g.peer, g.problem, g.routes
    from jsonb_to_recordset(${JSON.stringify(sessions)}::jsonb) as g(peer text, problem text, routes int) order by g.peer
    on conflict (peer) do update set problem = excluded.problem, routes = excluded.routes, told_at = svc_now(),
      since = case when (held.problem is null) = (excluded.problem is null) then held.since else svc_now() end`.execute(
    trx,
  );
}

export async function listSessions(db: Queryable): Promise<StoredSession[]> {
  const { rows } = await sql<StoredSession>`
    select peer, problem, routes, floor(extract(epoch from since) * 1000)::float8 as "sinceMs",
      extract(epoch from svc_now() - told_at)::float8 as "toldAgeSeconds" from bgp_sessions order by peer`.execute(
    db,
  );
  return rows;
}
