/** What is made of hours: days by name. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { sumHoursByName } from './name-rollup-store.ts';
import { preferHashing } from './span-store.ts';

export interface SiteDay {
  siteId: number;
  day: number;
}

/** Days that have to be made, all hours of which are. A settled one has ended and got no mark of late, or waits for an hour. */
export async function findDirtyDays(db: Queryable, which: 'settled' | 'all'): Promise<SiteDay[]> {
  const isSettled = sql`d.day + interval '1 day 10 minutes' <= svc_now() and (d.marked_at <= svc_now() - interval '5 minutes'
    or coalesce(d.rolled_at, d.day) <= svc_now() - interval '25 hours')`;
  const { rows } = await sql<SiteDay>`
    select d.site_id as "siteId", extract(epoch from d.day)::float8 as day from rolled_days d
    where d.is_dirty and ${which === 'all' ? sql`true` : isSettled} and not exists (select from rolled_hours h
      where h.site_id = d.site_id and h.is_dirty and h.hour >= d.day and h.hour < d.day + interval '1 day')
    order by d.day desc, d.site_id limit 100`.execute(db);
  return rows;
}

/** Makes a day of its hours by address; nothing if one of them is out of date or another process was first. */
export async function recomputeDay(trx: Queryable, { siteId, day }: SiteDay): Promise<void> {
  const start = sql`to_timestamp(${day}::float8)`;
  const inDay = sql`hour >= ${start} and hour < ${start} + interval '1 day'`;
  const { rows } = await sql`
    update rolled_days set is_dirty = false, rolled_at = svc_now()
    where site_id = ${siteId} and day = ${start} and is_dirty
      and not exists (select from rolled_hours where site_id = ${siteId} and is_dirty and ${inDay}) returning 1`.execute(
    trx,
  );
  if (rows.length === 0) return;
  await preferHashing(trx);
  await sumHoursByName(trx, 'day', start, siteId, inDay);
}
