/** The newest upload of each sensor that was not taken. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** After a pause of ten minutes a refusal is a new one. */
export async function upsertRefusal(
  db: Queryable,
  sensorId: number,
  refusal: { code: string; message: string },
): Promise<void> {
  await sql`
    insert into sensor_refusals as held (sensor_id, code, message, first_refused_at, last_refused_at)
    values (${sensorId}, ${refusal.code}, ${refusal.message.slice(0, 300)}, svc_now(), svc_now())
    on conflict (sensor_id) do update set code = excluded.code, message = excluded.message, last_refused_at = svc_now(),
      first_refused_at = case when held.last_refused_at > svc_now() - interval '10 minutes'
        then held.first_refused_at else svc_now() end`.execute(db);
}
