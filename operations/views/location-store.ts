/** Locations as they are offered. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface OfferedLocation {
  id: number;
  slug: string;
  name: string;
  country: string;
}

/** Locations that have a cluster. */
export async function listOfferedLocations(db: Queryable): Promise<OfferedLocation[]> {
  const { rows } = await sql<OfferedLocation>`
    select id, slug, name, country from locations
    where id in (select location_id from clusters) order by slug`.execute(db);
  return rows;
}
