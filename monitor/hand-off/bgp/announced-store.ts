/** What BGP peers are to be told. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Action } from '../action.ts';

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
