/** Saved views: a name and a query of each site. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface SavedView {
  id: number;
  name: string;
  /** Of the explorer's URL, without a question mark. */
  query: string;
  createdBy: string;
}

/** In the order of their names. */
export async function listViews(db: Queryable, siteId: number): Promise<SavedView[]> {
  const { rows } = await sql<SavedView>`
    select id::float8 as id, name, query, created_by from saved_views
    where site_id = ${siteId} order by lower(name)`.execute(db);
  return rows;
}

/** In the place of a view of this name. Null: the site has `max` others. */
export async function saveView(
  trx: Queryable,
  view: Omit<SavedView, 'id'> & { siteId: number; max: number },
): Promise<{ id: number } | null> {
  // One at a time for a site, so that the limit holds.
  await sql`select pg_advisory_xact_lock(hashtextextended('saved_views', ${view.siteId}::bigint))`.execute(
    trx,
  );
  const { rows } = await sql<{ id: number }>`
    insert into saved_views (site_id, name, query, created_by)
    select ${view.siteId}, ${view.name}, ${view.query}, ${view.createdBy}
    where (select count(*) from saved_views where site_id = ${view.siteId} and lower(name) <> lower(${view.name})) < ${view.max}
    on conflict (site_id, lower(name)) do update set name = excluded.name, query = excluded.query, created_by = excluded.created_by
    returning id::float8 as id`.execute(trx);
  return rows[0] ?? null;
}

/** Null: the site has no such view. */
export async function removeView(
  trx: Queryable,
  siteId: number,
  id: number,
): Promise<{ name: string; query: string } | null> {
  const { rows } = await sql<{ name: string; query: string }>`
    delete from saved_views where id = ${id} and site_id = ${siteId} returning name, query`.execute(trx);
  return rows[0] ?? null;
}
