import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A site's sensors in figures. */
export interface SensorSummary {
  siteId: number;
  sensors: number;
  /** Those not heard of since the time asked for, or never. */
  silent: number;
}

/** One look for all sites; those without a sensor are left out. */
export async function summarizeSensors(db: Queryable, silentSinceMs: number): Promise<SensorSummary[]> {
  const { rows } = await sql<SensorSummary>`
    select s.site_id as "siteId", count(*)::int as sensors,
      (count(*) filter (where c.last_contact_at is null or c.last_contact_at < to_timestamp(${silentSinceMs / 1000}::float8)))::int as silent
    from sensors s left join sensor_contacts c on c.sensor_id = s.id
    where s.revoked_at is null group by s.site_id`.execute(db);
  return rows;
}
