/** When captures listened that could see what a query is about: without such a minute, nothing seen is no zero. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Explored, type ExploredReading, splitPlaces } from '../contract/exploration.ts';
import { conditionOf, placesMatch } from './explore-filters-store.ts';
import { daySeconds } from './span-store.ts';

/** Minutes in which a capture listened that could see what the filters name. */
export async function listObserved(
  db: Queryable,
  asked: ExploredReading,
  stepSeconds: number,
): Promise<Explored['observed']> {
  const { siteId, fromMinute, toMinute, filters } = asked;
  const within = sql`site_id = ${siteId} and minute >= to_timestamp(${fromMinute}) and minute < to_timestamp(${toMinute})`;
  const places = filters.filter((one) => one.dimension === 'address' && one.is);
  const ofCapture = filters.filter((one) => one.dimension === 'sensor' || one.dimension === 'scope');
  const step = sql`floor(extract(epoch from minute) / ${stepSeconds}) * ${stepSeconds * 1000}::float8 as time_ms`;
  if (places.length + ofCapture.length === 0) {
    const { rows } = await sql<Explored['observed'][number]>`
      select ${step}, count(*)::int as minutes from site_minutes where ${within}
      group by 1 order by 1`.execute(db);
    return rows;
  }
  const listened = sql`(select * from capture_minutes where ${within}) b
    where ${sql.join([sql`true`, ...ofCapture.map(conditionOf)], sql` and `)}`;
  const since = sql`site_id = ${siteId} and minute >= to_timestamp(${fromMinute - daySeconds}) and minute < to_timestamp(${toMinute})
    and not is_foreign`;
  const [named] = places;
  const { addresses, networks, segments } = splitPlaces(named?.values ?? []);
  if (places.length === 1 && networks.length + segments.length === 0) {
    // The rows of a server of a day are many, its newest one is found at once.
    const { rows } = await sql<{ timeMs: number; minutes: number; most: number }>`
      with saw as materialized (
        select distinct newest.capture_id from unnest(${addresses}::inet[]) each, lateral (
          select capture_id from host_minutes where address = each and ${since} order by minute desc limit 1) newest)
      select ${step}, (count(*) filter (where is_seen))::int as minutes, count(*)::int as most
      from (select minute, bool_or(capture_id in (select capture_id from saw)) as is_seen from ${listened} group by minute) m
      group by 1 order by 1`.execute(db);
    // Where these captures always listened, others that saw an address can add nothing.
    if (rows.every(({ minutes, most }) => minutes === most))
      return rows.map(({ timeMs, minutes }) => ({ timeMs, minutes }));
  }
  const saw = sql`select distinct capture_id from host_minutes where ${since} and ${sql.join(
    places.map((one) => placesMatch(sql`address`, sql`segment`, one.values)),
    sql` and `,
  )}`;
  const { rows } = await sql<Explored['observed'][number]>`
    select ${step}, count(distinct minute)::int as minutes from ${listened}
      and ${places.length === 0 ? sql`true` : sql`b.capture_id in (${saw})`}
    group by 1 order by 1`.execute(db);
  return rows;
}
