/** What each sensor's host had room for when it told last. */
import { type RawBuilder, sql } from 'kysely';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A condition as it was told, and when it came. */
export interface KnownCondition extends SensorCondition {
  sensorId: number;
  receivedAtMs: number;
}

/**
 * An older one never takes the place of a newer. A sensor has one request under way and waits at most seconds for it, so
 * one that is a minute older comes from a clock that was set back, and is true.
 */
export async function upsertCondition(
  db: Queryable,
  sensorId: number,
  condition: SensorCondition,
): Promise<void> {
  await sql`
    insert into sensor_conditions as held (sensor_id, observed_at, received_at, spool_pending_bytes, spool_bytes_max,
      spool_pending_uploads, disk_free_bytes, disk_bytes, is_paused, captures)
    values (${sensorId}, to_timestamp(${condition.observedAtMs / 1000}::float8), svc_now(), ${condition.spoolPendingBytes},
      ${condition.spoolBytesMax}, ${condition.spoolPendingUploads}, ${condition.diskFreeBytes}, ${condition.diskBytes},
      ${condition.isPaused}, ${condition.captures ? JSON.stringify(condition.captures) : null}::jsonb)
    on conflict (sensor_id) do update set observed_at = excluded.observed_at, received_at = excluded.received_at,
      spool_pending_bytes = excluded.spool_pending_bytes, spool_bytes_max = excluded.spool_bytes_max,
      spool_pending_uploads = excluded.spool_pending_uploads, disk_free_bytes = excluded.disk_free_bytes,
      disk_bytes = excluded.disk_bytes, is_paused = excluded.is_paused, captures = excluded.captures
    where excluded.observed_at >= held.observed_at or excluded.observed_at < held.observed_at - interval '1 minute'`.execute(
    db,
  );
}

export async function listConditions(db: Queryable, siteId: number): Promise<KnownCondition[]> {
  const { rows } = await sql<
    Omit<KnownCondition, 'captures'> & { captures: KnownCondition['captures'] | null }
  >`
    select c.sensor_id as "sensorId", (extract(epoch from c.observed_at) * 1000)::float8 as "observedAtMs",
      (extract(epoch from c.received_at) * 1000)::float8 as "receivedAtMs", c.spool_pending_bytes as "spoolPendingBytes",
      c.spool_bytes_max as "spoolBytesMax", c.spool_pending_uploads as "spoolPendingUploads",
      c.disk_free_bytes as "diskFreeBytes", c.disk_bytes as "diskBytes", c.is_paused as "isPaused",
      c.captures
    from sensor_conditions c join sensors s on s.id = c.sensor_id
    where s.site_id = ${siteId} and s.revoked_at is null`.execute(db);
  return rows.map(({ captures, ...row }) => ({ ...row, ...(captures ? { captures } : {}) }));
}

/**
 * For statements of other features: whether what a sensor told of itself within two minutes shows that its clock agrees
 * with the database's.
 */
export const isClockRight = (sensorId: RawBuilder<unknown>): RawBuilder<boolean> => sql<boolean>`
  coalesce((select k.received_at > svc_now() - interval '2 minutes'
      and abs(extract(epoch from k.observed_at - k.received_at)) < 30
    from sensor_conditions k where k.sensor_id = ${sensorId}), false)`;
