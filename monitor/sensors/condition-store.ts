/** What each sensor's host had room for when it told last. */
import { sql } from 'kysely';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A condition as it was told, and when it came. */
export interface KnownCondition extends SensorCondition {
  sensorId: number;
  receivedAtMs: number;
}

/** An older one never takes the place of a newer, but for a clock that was set back: then what comes now is true. */
export async function upsertCondition(
  db: Queryable,
  sensorId: number,
  condition: SensorCondition,
): Promise<void> {
  await sql`
    insert into sensor_conditions as held (sensor_id, observed_at, received_at, spool_pending_bytes, spool_bytes_max,
      spool_pending_uploads, disk_free_bytes, disk_bytes, is_paused)
    values (${sensorId}, to_timestamp(${condition.observedAtMs / 1000}::float8), svc_now(), ${condition.spoolPendingBytes},
      ${condition.spoolBytesMax}, ${condition.spoolPendingUploads}, ${condition.diskFreeBytes}, ${condition.diskBytes},
      ${condition.isPaused})
    on conflict (sensor_id) do update set observed_at = excluded.observed_at, received_at = excluded.received_at,
      spool_pending_bytes = excluded.spool_pending_bytes, spool_bytes_max = excluded.spool_bytes_max,
      spool_pending_uploads = excluded.spool_pending_uploads, disk_free_bytes = excluded.disk_free_bytes,
      disk_bytes = excluded.disk_bytes, is_paused = excluded.is_paused
    where excluded.observed_at >= held.observed_at or held.observed_at > svc_now() + interval '1 minute'`.execute(
    db,
  );
}

export async function listConditions(db: Queryable, siteId: number): Promise<KnownCondition[]> {
  const { rows } = await sql<KnownCondition>`
    select c.sensor_id as "sensorId", (extract(epoch from c.observed_at) * 1000)::float8 as "observedAtMs",
      (extract(epoch from c.received_at) * 1000)::float8 as "receivedAtMs", c.spool_pending_bytes as "spoolPendingBytes",
      c.spool_bytes_max as "spoolBytesMax", c.spool_pending_uploads as "spoolPendingUploads",
      c.disk_free_bytes as "diskFreeBytes", c.disk_bytes as "diskBytes", c.is_paused as "isPaused"
    from sensor_conditions c join sensors s on s.id = c.sensor_id
    where s.site_id = ${siteId} and s.revoked_at is null`.execute(db);
  return rows;
}
