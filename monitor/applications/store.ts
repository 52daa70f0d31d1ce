/** The stored rankings. */
import { sql } from 'kysely';
import type { ApplicationUse } from '#monitor/facts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A ranking of 24 hours at its time of computation. */
export interface StoredRanking {
  fromMs: number;
  toMs: number;
  computedAtMs: number;
  use: ApplicationUse;
}

export async function saveRanking(
  trx: Queryable,
  ranking: { siteId: number; view: string; fromMinute: number; toMinute: number; use: ApplicationUse },
): Promise<void> {
  const { siteId, view, fromMinute, toMinute, use } = ranking;
  await sql`
    insert into application_rankings (site_id, view, from_minute, to_minute, ranking)
    values (${siteId}, ${view}, to_timestamp(${fromMinute}), to_timestamp(${toMinute}), ${JSON.stringify(use)}::jsonb)
    on conflict (site_id, view) do update set from_minute = excluded.from_minute, to_minute = excluded.to_minute,
      computed_at = svc_now(), ranking = excluded.ranking`.execute(trx);
}

export async function findRanking(
  db: Queryable,
  siteId: number,
  view: string,
): Promise<StoredRanking | null> {
  const { rows } = await sql<StoredRanking>`
    select (extract(epoch from from_minute) * 1000)::float8 as from_ms, (extract(epoch from to_minute) * 1000)::float8 as to_ms,
      floor(extract(epoch from computed_at) * 1000)::float8 as computed_at_ms, ranking as use
    from application_rankings where site_id = ${siteId} and view = ${view}`.execute(db);
  return rows[0] ?? null;
}
