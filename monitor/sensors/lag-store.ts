/** How far behind what sensors have sent is. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface SensorLag {
  sensorId: number;
  siteId: number;
  hostName: string;
  /** Since the end of the newest minute it sent; null: it never sent one. */
  lagSeconds: number | null;
  /** Since it was heard, or enrolled where it never was. */
  silentSeconds: number;
  hasContact: boolean;
}

/** The sensors that may still speak, by id; at most `limit`. */
export async function listLags(db: Queryable, limit: number): Promise<SensorLag[]> {
  const { rows } = await sql<SensorLag>`
    select s.id as "sensorId", s.site_id as "siteId", s.host_name as "hostName",
      case when c.newest_minute is not null then greatest(extract(epoch from svc_now() - c.newest_minute) - 60, 0)::float8 end as "lagSeconds",
      extract(epoch from svc_now() - coalesce(c.last_contact_at, s.enrolled_at))::float8 as "silentSeconds",
      c.last_contact_at is not null as "hasContact"
    from sensors s left join sensor_contacts c on c.sensor_id = s.id
    where s.revoked_at is null order by s.id limit ${limit}`.execute(db);
  return rows;
}
