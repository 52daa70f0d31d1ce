import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface EventInput {
  /** As NET-6 names it, such as `telemetry_rejected`. */
  kind: string;
  siteId: number | null;
  sensorId?: number | null;
  /** Facts for people; no secrets. */
  details: Readonly<Record<string, unknown>>;
}

export interface MonitorEvent {
  id: number;
  kind: string;
  siteId: number | null;
  sensorId: number | null;
  occurredAtMs: number;
  details: Record<string, unknown>;
}

export async function insertEvent(db: Queryable, event: EventInput): Promise<void> {
  await sql`insert into events (kind, site_id, sensor_id, details)
    values (${event.kind}, ${event.siteId}, ${event.sensorId ?? null}, ${JSON.stringify(event.details)}::jsonb)`.execute(
    db,
  );
}

export async function listEvents(db: Queryable, siteId: number, limit: number): Promise<MonitorEvent[]> {
  const { rows } = await sql<MonitorEvent>`
    select id, kind, site_id as "siteId", sensor_id as "sensorId",
           (extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs", details
    from events where site_id = ${siteId} order by occurred_at desc, id desc limit ${limit}`.execute(db);
  return rows;
}
