/** Every statement on saved views. Each names the person and the surface: a view of another person is not there. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export type SavedViewSurface = 'portal' | 'console';

export interface SavedView {
  id: number;
  name: string;
  query: string;
  /** For all operators. */
  isShared: boolean;
}

/** Whose views are read or changed. */
export interface ViewOwner {
  personId: number;
  surface: SavedViewSurface;
}

const reachedBy = ({ personId, surface }: ViewOwner) =>
  sql`surface = ${surface} and (is_shared or person_id = ${personId})`;

/** In the order of their names. */
export async function listViews(db: Queryable, owner: ViewOwner): Promise<SavedView[]> {
  const { rows } = await sql<SavedView>`
    select id, name, query, is_shared from saved_views where ${reachedBy(owner)}
    order by lower(name), is_shared, id`.execute(db);
  return rows;
}

/** In the place of a view of this name. Null: there are `max` others. */
export async function saveView(
  trx: Queryable,
  owner: ViewOwner,
  view: Omit<SavedView, 'id'> & { max: number },
): Promise<{ id: number } | null> {
  const { personId, surface } = owner;
  const { name, query, isShared, max } = view;
  // One at a time, so that the limit holds.
  const whose = isShared ? 0 : personId;
  await sql`select pg_advisory_xact_lock(hashtextextended('saved_views ' || ${surface}, ${whose}::bigint))`.execute(
    trx,
  );
  const same = isShared ? sql`is_shared` : sql`not is_shared and person_id = ${personId}`;
  const { rows } = await sql<{ id: number }>`
    insert into saved_views (person_id, surface, is_shared, name, query)
    select ${personId}, ${surface}, ${isShared}, ${name}, ${query}
    where (select count(*) from saved_views
      where surface = ${surface} and ${same} and lower(name) <> lower(${name})) < ${max}
    on conflict (${isShared ? sql`` : sql`person_id, `}surface, lower(name))
      where ${isShared ? sql`is_shared` : sql`not is_shared`}
      do update set name = excluded.name, query = excluded.query, person_id = excluded.person_id
    returning id`.execute(trx);
  return rows[0] ?? null;
}

/** Null: the person reaches no such view. */
export async function removeView(
  trx: Queryable,
  owner: ViewOwner,
  id: number,
): Promise<{ name: string; query: string; isShared: boolean } | null> {
  const { rows } = await sql<{ name: string; query: string; isShared: boolean }>`
    delete from saved_views where id = ${id} and ${reachedBy(owner)} returning name, query, is_shared`.execute(
    trx,
  );
  return rows[0] ?? null;
}
