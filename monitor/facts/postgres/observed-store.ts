/** When captures listened that could see what a query is about: without such a minute, nothing seen is no zero. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Explored, ExploredReading } from '../contract/exploration.ts';
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
  const step = sql`floor(extract(epoch from minute) / ${stepSeconds}) * ${stepSeconds * 1000}::float8 as "timeMs"`;
  if (places.length + ofCapture.length === 0) {
    const { rows } = await sql<Explored['observed'][number]>`
      select ${step}, count(*)::int as minutes from site_minutes where ${within} group by 1 order by 1`.execute(
      db,
    );
    return rows;
  }
  const saw = sql`select distinct capture_id from host_minutes
    where site_id = ${siteId} and minute >= to_timestamp(${fromMinute - daySeconds}) and minute < to_timestamp(${toMinute})
      and not is_foreign and ${sql.join(
        places.map((one) => placesMatch(sql`address`, sql`segment`, one.values)),
        sql` and `,
      )}`;
  const { rows } = await sql<Explored['observed'][number]>`
    select ${step}, count(distinct minute)::int as minutes
    from (select * from capture_minutes where ${within}) b
    where ${sql.join([sql`true`, ...ofCapture.map(conditionOf)], sql` and `)}
      and ${places.length === 0 ? sql`true` : sql`b.capture_id in (${saw})`}
    group by 1 order by 1`.execute(db);
  return rows;
}
