/** The names of applications that can be found; what finds them is a read model (`monitor/views`). */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Times only widen; a name used today is written at most once an hour. */
export async function upsertApplicationNames(
  db: Queryable,
  siteId: number,
  names: readonly string[],
  seenAtMs: number,
): Promise<void> {
  await sql`
    insert into application_names as known (site_id, name, first_seen_at, last_seen_at)
    select ${siteId}, name, seen, seen
    from unnest(${[...names]}::text[]) as given (name), to_timestamp(${seenAtMs}::float8 / 1000) as seen
    order by name
    on conflict (site_id, name) do update set last_seen_at = excluded.last_seen_at
      where known.last_seen_at < excluded.last_seen_at - interval '1 hour'`.execute(db);
}
