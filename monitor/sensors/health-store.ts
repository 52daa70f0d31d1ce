/** When every sensor was heard, by the database's clock, what its host had room for, and which upload was refused. */
import { sql } from 'kysely';
import type { CaptureCondition } from '#contracts/sensor-api/live.ts';
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
    select s.id, s.site_id as "siteId", s.host_name as "hostName",
      extract(epoch from svc_now() - greatest(c.last_contact_at, k.received_at, r.last_refused_at))::float8
        as "contactAgeSeconds",
      extract(epoch from svc_now() - coalesce(c.newest_minute_at, least(c.newest_minute + interval '1 minute', svc_now())))::float8
        as "minuteAgeSeconds",
      extract(epoch from svc_now() - s.enrolled_at)::float8 as "enrolledAgeSeconds",
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
