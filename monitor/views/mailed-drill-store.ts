/** Which incidents are of drills whose operator wants the customer mailed. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Of these incidents. An incident may consist of several drills; one that mails is enough. */
export async function listMailedDrills(db: Queryable, incidentIds: readonly string[]): Promise<Set<string>> {
  if (incidentIds.length === 0) return new Set();
  const { rows } = await sql<{ id: string }>`
    select i.id from incidents i
    where i.id = any(${[...incidentIds]}::uuid[]) and i.is_drill and i.target_kind = 'host'
      and exists (select 1 from protection_drills d
        where d.site_id = i.site_id and d.mails_customer and host(d.address) = i.target and d.direction = i.direction
          and d.starts_at <= i.last_observed_at
          and d.starts_at + d.seconds * interval '1 second' >= i.started_at)`.execute(db);
  return new Set(rows.map(({ id }) => id));
}
