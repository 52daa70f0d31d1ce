import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A site's sensors in figures. */
export interface SensorSummary {
  siteId: number;
  sensors: number;
  /** Those not heard, nor enrolled, since the time asked for. */
  silent: number;
  /** Those enrolled since then that were never heard. */
  waiting: number;
}

/** One look for all sites; those without a sensor are left out. */
export async function summarizeSensors(db: Queryable, silentSinceMs: number): Promise<SensorSummary[]> {
  const { rows } = await sql<SensorSummary>`
    select s.site_id as "siteId", count(*)::int as sensors,
      (count(*) filter (where coalesce(c.last_contact_at, s.enrolled_at) < since.at))::int as silent,
      (count(*) filter (where c.last_contact_at is null and s.enrolled_at >= since.at))::int as waiting
    from sensors s left join sensor_contacts c on c.sensor_id = s.id,
      (select to_timestamp(${silentSinceMs / 1000}::float8) as at) since
    where s.revoked_at is null group by s.site_id`.execute(db);
  return rows;
}
