/** The move of the facts that is under way, as PostgreSQL knows it. */

import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { EngineIdentity, SiteDay } from './engine-use-store.ts';

export interface FactMove {
  toStoreId: string | null;
  toPlace: string;
  fault: string | null;
}

export async function readMove(db: Queryable): Promise<FactMove | null> {
  const { rows } = await sql<FactMove>`
    select to_store_id, to_place, fault from fact_moves`.execute(db);
  return rows[0] ?? null;
}

export async function writeMove(trx: Queryable, { storeId, place }: EngineIdentity): Promise<void> {
  await sql`insert into fact_moves (to_store_id, to_place) values (${storeId}::uuid, ${place})`.execute(trx);
}

export async function noteFault(db: Queryable, fault: string | null): Promise<void> {
  await sql`update fact_moves set fault = ${fault}`.execute(db);
}

/** Forgets the move with all that is known of its days. */
export async function endMove(trx: Queryable): Promise<void> {
  for (const table of ['fact_moves', 'fact_move_days', 'fact_move_changes'])
    await sql`delete from ${sql.table(table)}`.execute(trx);
}

/** A day that the move has begun to copy. */
export interface MoveDay extends SiteDay {
  captureMinutes: number;
  peersFrom: number;
  isWhole: boolean;
  hasChanged: boolean;
}

export async function listMoveDays(db: Queryable): Promise<MoveDay[]> {
  const { rows } = await sql<MoveDay>`
    select d.site_id, extract(epoch from d.day)::float8 as day, d.capture_minutes,
      extract(epoch from d.peers_from)::float8 as peers_from, d.is_whole,
      exists (select from fact_move_changes c where c.site_id = d.site_id and c.day = d.day) as has_changed
    from fact_move_days d order by d.day, d.site_id`.execute(db);
  return rows;
}

/** Days that changed since they were copied, or were never copied. */
export async function listChangedDays(db: Queryable): Promise<SiteDay[]> {
  const { rows } = await sql<SiteDay>`
    select distinct site_id, extract(epoch from day)::float8 as day
    from fact_move_changes`.execute(db);
  return rows;
}

/**
 * Before a day is read: removes the changes that are known by now, which the copy will hold. Returns true if the day was begun
 * before, so that something of it may be there.
 */
export async function beginDay(
  trx: Queryable,
  { siteId, day, captureMinutes, peersFrom }: Omit<MoveDay, 'isWhole' | 'hasChanged'>,
): Promise<boolean> {
  await sql`delete from fact_move_changes where site_id = ${siteId}
    and day = to_timestamp(${day})`.execute(trx);
  const { rows } = await sql`select 1 from fact_move_days where site_id = ${siteId}
      and day = to_timestamp(${day})`.execute(trx);
  await sql`
    insert into fact_move_days (site_id, day, capture_minutes, peers_from)
    values (${siteId}, to_timestamp(${day}), ${captureMinutes}, to_timestamp(${peersFrom}))
    on conflict (site_id, day) do update
      set capture_minutes = excluded.capture_minutes, peers_from = excluded.peers_from, is_whole = false`.execute(
    trx,
  );
  return rows.length > 0;
}

export async function setWhole(db: Queryable, { siteId, day }: SiteDay, isWhole: boolean): Promise<void> {
  await sql`update fact_move_days set is_whole = ${isWhole} where site_id = ${siteId}
    and day = to_timestamp(${day})`.execute(db);
}

/** What a move may still copy, seconds by the database's clock. */
export interface KeptBounds {
  now: number;
  /** Facts, and exact pairs, from here on are kept. */
  factsFrom: number;
  pairsFrom: number;
}

export async function readKept(db: Queryable): Promise<KeptBounds> {
  const { rows } = await sql<KeptBounds>`
    select extract(epoch from svc_now())::float8 as now,
      floor(extract(epoch from svc_now() - ${sql.lit(kept.traffic)}::interval))::float8 as facts_from,
     
      floor(extract(epoch from svc_now() - ${sql.lit(kept.pairs)}::interval))::float8 as pairs_from`.execute(
    db,
  );
  return rows[0]!;
}

/** The lease of the process that copies. */
export const moveLeaseName = 'move_facts';

/** A move for people. */
export interface MoveProgress {
  toPlace: string;
  fault: string | null;
  /** Days of sites that are copied and have not changed since. */
  copied: number;
  /** The copy of the last days has begun, while uploads wait. */
  isHolding: boolean;
}

export async function readMoveProgress(db: Queryable): Promise<MoveProgress | null> {
  const { rows } = await sql<MoveProgress>`
    select to_place, fault, is_holding,
      (select count(*)::int from fact_move_days d where is_whole
        and not exists (select from fact_move_changes c where c.site_id = d.site_id and c.day = d.day)) as copied
    from fact_moves`.execute(db);
  return rows[0] ?? null;
}

export async function noteHolding(db: Queryable, isHolding: boolean): Promise<void> {
  await sql`update fact_moves set is_holding = ${isHolding}`.execute(db);
}
