/** When every sensor was heard, by the database's clock, what its host had room for, and which upload was refused. */
import { type RawBuilder, sql } from 'kysely';
import type { CaptureCondition, SensorCondition } from '#contracts/sensor-api/live.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A sensor as its tables show it. */
export interface StoredHealth {
  id: number;
  siteId: number;
  hostName: string;
  /** Since it was heard in any way; null: never. */
  contactAgeSeconds: number | null;
  /** Since a minute of it arrived; null: none ever did. */
  minuteAgeSeconds: number | null;
  /** Since it was enrolled. */
  enrolledAgeSeconds: number;
  /** Null: it never told. */
  condition: {
    ageSeconds: number;
    /** How far its clock is ahead of the database's; negative: behind. */
    skewSeconds: number;
    spoolPendingBytes: number;
    spoolBytesMax: number;
    diskFreeBytes: number;
    diskBytes: number;
    isPaused: boolean;
    /** Null: an older sensor, which does not tell. */
    captures: CaptureCondition[] | null;
  } | null;
  /** The newest upload that was not taken; null: all were. */
  refusal: { ageSeconds: number; code: string; message: string } | null;
  credential: {
    /** Until it ends; negative: since it ended. Null: it has no end. */
    leftSeconds: number | null;
    /** From its issue to its end; null: it has no end. */
    lifeSeconds: number | null;
    /** Since a credential that had been replaced was shown last; null: none ever was. */
    misusedAgeSeconds: number | null;
  };
}

/** Of every site, or of one. */
export async function listHealth(db: Queryable, siteId: number | null = null): Promise<StoredHealth[]> {
  const { rows } = await sql<StoredHealth>`
    select s.id, s.site_id, s.host_name,
      extract(epoch from svc_now() - greatest(c.last_contact_at, k.received_at, r.last_refused_at))::float8
        as contact_age_seconds,
      extract(epoch from svc_now() - coalesce(c.newest_minute_at, least(c.newest_minute + interval '1 minute', svc_now())))::float8
        as minute_age_seconds, extract(epoch from svc_now() - s.enrolled_at)::float8 as enrolled_age_seconds,
      case when k.sensor_id is null then null else json_build_object(
        'ageSeconds', extract(epoch from svc_now() - k.received_at)::float8,
        'skewSeconds', extract(epoch from k.observed_at - k.received_at)::float8, 'spoolPendingBytes', k.spool_pending_bytes,
        'spoolBytesMax', k.spool_bytes_max, 'diskFreeBytes', k.disk_free_bytes, 'diskBytes', k.disk_bytes,
        'isPaused', k.is_paused, 'captures', k.captures) end as condition,
      case when r.sensor_id is null then null else json_build_object(
        'ageSeconds', extract(epoch from svc_now() - r.last_refused_at)::float8, 'code', r.code, 'message', r.message)
        end as refusal,
      (select json_build_object(
        'leftSeconds', extract(epoch from max(u.expires_at) filter (where u.replaced_at is null) - svc_now())::float8,
        'lifeSeconds', extract(epoch from max(u.expires_at - u.issued_at) filter (where u.replaced_at is null))::float8,
        'misusedAgeSeconds', extract(epoch from svc_now() - max(u.misused_at))::float8)
        from sensor_credentials u where u.sensor_id = s.id and u.first_used_at is not null) as credential
    from sensors s
    left join sensor_contacts c on c.sensor_id = s.id
    left join sensor_conditions k on k.sensor_id = s.id
    left join sensor_refusals r on r.sensor_id = s.id
    where s.revoked_at is null and (${siteId}::bigint is null or s.site_id = ${siteId}::bigint)`.execute(db);
  return rows;
}

/** A condition as it was told, and when it came. */
export interface KnownCondition extends SensorCondition {
  sensorId: number;
  receivedAtMs: number;
}

/**
 * An older one never takes the place of a newer. A sensor has one request under way and waits at most seconds for it, so
 * one that is a minute older comes from a clock that was set back, and is true.
 */
export async function upsertCondition(db: Queryable, sensorId: number, condition: SensorCondition) {
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
    select c.sensor_id, (extract(epoch from c.observed_at) * 1000)::float8 as observed_at_ms,
      (extract(epoch from c.received_at) * 1000)::float8 as received_at_ms, c.spool_pending_bytes, c.spool_bytes_max,
      c.spool_pending_uploads, c.disk_free_bytes, c.disk_bytes, c.is_paused, c.captures
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
    select s.id as sensor_id, s.site_id, s.host_name,
      case when c.newest_minute is not null then greatest(extract(epoch from svc_now() - c.newest_minute) - 60, 0)::float8 end as lag_seconds,
      extract(epoch from svc_now() - coalesce(c.last_contact_at, s.enrolled_at))::float8 as silent_seconds,
      c.last_contact_at is not null as has_contact
    from sensors s left join sensor_contacts c on c.sensor_id = s.id
    where s.revoked_at is null order by s.id limit ${limit}`.execute(db);
  return rows;
}

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
    select s.site_id, count(*)::int as sensors,
      (count(*) filter (where coalesce(c.last_contact_at, s.enrolled_at) < since.at))::int as silent,
      (count(*) filter (where c.last_contact_at is null and s.enrolled_at >= since.at))::int as waiting
    from sensors s left join sensor_contacts c on c.sensor_id = s.id,
      (select to_timestamp(${silentSinceMs / 1000}::float8) as at) since
    where s.revoked_at is null group by s.site_id`.execute(db);
  return rows;
}
