/** What sensors say they protect: their newest epochs. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface AddressEpoch {
  sensorId: number;
  hostName: string;
  /** UUID. */
  id: string;
  sinceMs: number;
}

/** The newest epoch of each sensor of the site, where it contains the address; by host name. */
export async function listEpochsOf(db: Queryable, siteId: number, address: string): Promise<AddressEpoch[]> {
  const { rows } = await sql<AddressEpoch>`
    select s.id as "sensorId", s.host_name as "hostName", e.id, (extract(epoch from e.since) * 1000)::float8 as "sinceMs"
    from sensors s cross join lateral (
      select id, since, prefixes from detector_epochs where sensor_id = s.id order by since desc limit 1) e
    where s.site_id = ${siteId} and s.revoked_at is null
      and exists (select from unnest(e.prefixes) p where p >>= ${address}::inet)
    order by lower(s.host_name), s.id`.execute(db);
  return rows;
}
