/** What each sensor measured of a probe. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Results of one sensor for a probe. */
export interface SensorView {
  sensorId: number;
  hostName: string;
  sent: number;
  lost: number;
  rttUs: number | null;
  lastMinuteMs: number;
}

export async function listSensorViews(
  db: Queryable,
  range: { probeId: number; fromMs: number; toMs: number },
): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select r.sensor_id as "sensorId", s.host_name as "hostName", sum(r.sent)::float8 as sent, sum(r.lost)::float8 as lost,
      avg(r.rtt_median_us)::float8 as "rttUs", (extract(epoch from max(r.minute)) * 1000)::float8 as "lastMinuteMs"
    from probe_results r join sensors s on s.id = r.sensor_id
    where r.probe_id = ${range.probeId} and r.minute >= to_timestamp(${range.fromMs / 1000}::float8)
      and r.minute < to_timestamp(${range.toMs / 1000}::float8)
    group by r.sensor_id, s.host_name order by lower(s.host_name), r.sensor_id`.execute(db);
  return rows;
}
