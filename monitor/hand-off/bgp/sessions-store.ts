import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Action } from '../action.ts';

export interface ToldSession {
  peer: string;
  /** Null: established. */
  problem: string | null;
  /** Announced now. */
  routes: number;
}

/** A session as its process said it last. */
interface StoredSession extends ToldSession {
  sinceMs: number;
  toldAgeSeconds: number;
}

/** These are all sessions. What was said before keeps its time where it is still so. */
export async function noteSessions(trx: Queryable, sessions: readonly ToldSession[]): Promise<void> {
  await sql`delete from bgp_sessions
    where peer <> all(${sessions.map(({ peer }) => peer)}::text[])`.execute(trx);
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
    select peer, problem, routes, floor(extract(epoch from since) * 1000)::float8 as since_ms,
      extract(epoch from svc_now() - told_at)::float8 as told_age_seconds
      from bgp_sessions order by peer`.execute(db);
  return rows;
}

// What BGP peers are to be told.

export type Announced = Pick<Action, 'id' | 'kind' | 'address' | 'target' | 'attack'>;

/** Actions whose routes are announced now. */
export async function listAnnounced(db: Queryable): Promise<Announced[]> {
  const { rows } = await sql<Announced>`
    select id, kind, address, target, attack from hand_off_actions
    where state = 'active' and not is_dry_run and kind in ('blackhole', 'flowspec') order by id`.execute(db);
  return rows;
}

/** Peers of rules that are on, and of actions that are not ended. */
export async function listPeersInUse(db: Queryable): Promise<string[]> {
  const { rows } = await sql<{ peer: string }>`
    select target ->> 'peer' as peer from hand_off_rules
    where mode = 'on' and removed_at is null and kind in ('blackhole', 'flowspec')
    union select target ->> 'peer' from hand_off_actions
    where ended_at is null and not is_dry_run and kind in ('blackhole', 'flowspec')`.execute(db);
  return rows.map(({ peer }) => peer);
}
