/** Captures, and when they failed. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type * as facts from '../contract/facts.ts';

/** A capture as PostgreSQL knows it. */
export interface KnownCapture {
  captureId: number;
  sensorId: number;
  siteId: number;
  name: string;
  role: facts.Vantage;
}

/** Captures by sensor and name; of one site, or with null of all. */
export async function listKnown(db: Queryable, siteId: number | null): Promise<KnownCapture[]> {
  const { rows } = await sql<KnownCapture>`
    select id as "captureId", sensor_id as "sensorId", site_id as "siteId", name, role from captures
    where ${siteId}::bigint is null or site_id = ${siteId} order by sensor_id, name collate "C"`.execute(db);
  return rows;
}

/** The newest minute since that one in which each capture is known to have failed. */
export async function listFailed(db: Queryable, sinceMinute: number): Promise<Map<number, number>> {
  const { rows } = await sql<{ captureId: number; through: number }>`
    select c.id as "captureId", extract(epoch from max(g.to_minute))::float8 as through
    from captures c join telemetry_gaps g on g.site_id = c.site_id and g.sensor_id = c.sensor_id
    where g.to_minute >= to_timestamp(${sinceMinute}) and g.reason = 'capture_failed' and g.capture in ('', c.name)
    group by c.id`.execute(db);
  return new Map(rows.map((row) => [row.captureId, row.through]));
}
