/** Which engine holds the facts, and the changes of days that a move has to copy again. */
import { sql } from 'kysely';
import { CodedError } from '#common/errors/index.ts';
import { share } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload } from '../contract/facts.ts';

/** An engine of facts as a process knows it. */
export interface EngineIdentity {
  /** The number of the tables in ClickHouse; null: PostgreSQL. */
  storeId: string | null;
  /** For messages, without a password. */
  place: string;
}

export const postgresIdentity: EngineIdentity = { storeId: null, place: 'PostgreSQL' };

/** Of tables in ClickHouse that have no number yet: no engine in use has it. */
export const noStore = '00000000-0000-0000-0000-000000000000';

/** The engine in use; null before the first start. */
export async function readEngineUse(db: Queryable): Promise<EngineIdentity | null> {
  const { rows } = await sql<EngineIdentity>`
    select store_id, place from fact_engine`.execute(db);
  return rows[0] ?? null;
}

/** The same, so that no other transaction notes another one before the end of this one. */
export async function lockEngineUse(trx: Queryable): Promise<EngineIdentity | null> {
  await sql`lock table fact_engine in share row exclusive mode`.execute(trx);
  return readEngineUse(trx);
}

export async function writeEngineUse(trx: Queryable, { storeId, place }: EngineIdentity): Promise<void> {
  await sql`insert into fact_engine (store_id, place) values (${storeId}::uuid, ${place})
    on conflict (is_only) do update
    set store_id = excluded.store_id, place = excluded.place, since = excluded.since`.execute(trx);
}

/** True if the database holds facts of its own. */
export async function hasPostgresFacts(db: Queryable): Promise<boolean> {
  const { rows } = await sql<{ has: boolean }>`
    select exists (select from capture_minutes)
      or exists (select from peer_network_hours) as has`.execute(db);
  return rows[0]!.has;
}

export const daySeconds = 86_400;

/** Days of sites, each the second at which it starts. */
export interface SiteDay {
  siteId: number;
  day: number;
}

export const dayOf = (minute: number): number => Math.floor(minute / daySeconds) * daySeconds;

/**
 * Before facts are written, under the shared lock of placements: throws `facts.moved` where another engine holds them, and marks
 * the days for a move that is under way. The switch takes that lock alone, so it comes before all of this transaction or after.
 */
export async function noteChanges(trx: Queryable, own: EngineIdentity, changed: readonly SiteDay[]) {
  const days = [...new Map(changed.map((one) => [`${one.siteId} ${one.day}`, one])).values()];
  const { rows } = await sql<{ place: string; isOwn: boolean }>`
    with marked as (
      insert into fact_move_changes (site_id, day)
      select site_id, to_timestamp(day)
      from unnest(${days.map((one) => one.siteId)}::bigint[], ${days.map((one) => one.day)}::float8[]) as given (site_id, day)
      where exists (select from fact_moves))
    select place, store_id is not distinct from ${own.storeId}::uuid as is_own
    from fact_engine`.execute(trx);
  const used = rows[0];
  if (used && !used.isOwn) throw new CodedError('facts.moved', describeOther(used.place, own.place));
}

/** What a process says that is set to another engine than the one in use. */
export function describeOther(used: string, own: string): string {
  const setting =
    used === postgresIdentity.place
      ? 'Remove SVC_FACTS_URL from the settings of this process'
      : `Set SVC_FACTS_URL to it, with its user and password,`;
  return `The traffic facts of this installation are in ${used}, and this process is set to ${own}. ${setting} and start it again; to move the facts: ./svc monitor move-facts --help.`;
}

// What an engine does first in an append.

/** Throws `facts.moved` where another engine holds the facts; marks the uploads' days for a move. */
export async function noteAppend(trx: Queryable, own: EngineIdentity, uploads: readonly FactUpload[]) {
  // Until the end of the transaction no move begins, and none ends.
  await share(trx);
  const days = uploads.flatMap(({ origin: { siteId }, minutes }) =>
    minutes.map(({ minute }) => ({ siteId, day: dayOf(minute) })),
  );
  await noteChanges(trx, own, days);
}
