/** What captures lost in the newest minutes, of all sites at once. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface CaptureLoss {
  sensorId: number;
  siteId: number;
  hostName: string;
  name: string;
  /** How many of the minutes asked for have been collected. */
  minutes: number;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
}

/** The `minutes` before the last whole one: that one may still be on its way. Captures of every sensor, also silent ones. */
export async function listLosses(db: Queryable, minutes: number): Promise<CaptureLoss[]> {
  const { rows } = await sql<CaptureLoss>`
    select c.sensor_id as "sensorId", c.site_id as "siteId", s.host_name as "hostName", c.name,
      count(m.minute)::int as minutes, coalesce(sum(m.packets), 0)::float8 as packets,
      coalesce(sum(m.kernel_dropped), 0)::float8 as "kernelDropped",
      coalesce(sum(m.parser_dropped), 0)::float8 as "parserDropped"
    from captures c join sensors s on s.id = c.sensor_id
    left join capture_minutes m on m.site_id = c.site_id and m.capture_id = c.id
      and m.minute >= date_trunc('minute', svc_now()) - make_interval(mins => ${minutes + 1})
      and m.minute < date_trunc('minute', svc_now()) - interval '1 minute'
    where s.revoked_at is null
    group by c.id, s.id`.execute(db);
  return rows;
}
