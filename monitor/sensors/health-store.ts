/** When every sensor was heard, by the database's clock, and what its host had room for. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface SensorHealth {
  id: number;
  siteId: number;
  hostName: string;
  /** Since its last upload; null: never heard. */
  contactAgeSeconds: number | null;
  /** Null: it never told. */
  condition: {
    ageSeconds: number;
    spoolPendingBytes: number;
    spoolBytesMax: number;
    diskFreeBytes: number;
    diskBytes: number;
    isPaused: boolean;
  } | null;
}

export async function listHealth(db: Queryable): Promise<SensorHealth[]> {
  const { rows } = await sql<SensorHealth>`
    select s.id, s.site_id as "siteId", s.host_name as "hostName",
      extract(epoch from svc_now() - c.last_contact_at)::float8 as "contactAgeSeconds",
      case when k.sensor_id is null then null else json_build_object(
        'ageSeconds', extract(epoch from svc_now() - k.received_at)::float8, 'spoolPendingBytes', k.spool_pending_bytes,
        'spoolBytesMax', k.spool_bytes_max, 'diskFreeBytes', k.disk_free_bytes, 'diskBytes', k.disk_bytes,
        'isPaused', k.is_paused) end as condition
    from sensors s
    left join sensor_contacts c on c.sensor_id = s.id
    left join sensor_conditions k on k.sensor_id = s.id
    where s.revoked_at is null`.execute(db);
  return rows;
}
