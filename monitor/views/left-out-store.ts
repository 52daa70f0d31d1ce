/** Rows of sensors that were left out, for their health. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Since the sensor was enrolled, and how long ago the last one was. */
export interface LeftOutRows {
  ageSeconds: number;
  minuteRows: number;
  liveRows: number;
}

/** By sensor; those without such rows are not in it. */
export async function readLeftOut(db: Queryable): Promise<Map<number, LeftOutRows>> {
  const { rows } = await sql<LeftOutRows & { sensorId: number }>`
    select sensor_id as "sensorId", extract(epoch from svc_now() - last_at)::float8 as "ageSeconds",
      minute_rows as "minuteRows", live_rows as "liveRows"
    from sensor_set_asides`.execute(db);
  return new Map(rows.map(({ sensorId, ...leftOut }) => [sensorId, leftOut]));
}
