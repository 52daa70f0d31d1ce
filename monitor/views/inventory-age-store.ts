/** Up to when the inventory is certain about where servers are. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/**
 * The start of the listing that was imported last, as a timestamp's text; `infinity` when that listing is older than
 * `staleSeconds`, because no newer one is waited for, and before the first listing.
 */
export async function readCertainUntil(db: Queryable, staleSeconds: number): Promise<string> {
  const { rows } = await sql<{ until: string }>`
    select case when listed_at > svc_now() - make_interval(secs => ${staleSeconds}) then listed_at
      else 'infinity' end::text as until
    from inventory_state`.execute(db);
  return rows[0]?.until ?? 'infinity';
}
