import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface EventInput {
  /** As in NET-6, such as `telemetry_rejected`. */
  kind: string;
  siteId: number | null;
  sensorId?: number | null;
  /** When it happened, where that was observed; by default now. */
  occurredAtMs?: number;
  /** Details for people; no secrets. */
  details: Readonly<Record<string, unknown>>;
}

export interface StoredEvent {
  id: number;
  kind: string;
  siteId: number | null;
  sensorId: number | null;
  occurredAtMs: number;
  details: Record<string, unknown>;
}

export async function insertEvent(db: Queryable, event: EventInput): Promise<void> {
  await sql`insert into events (kind, site_id, sensor_id, details, occurred_at)
    values (${event.kind}, ${event.siteId}, ${event.sensorId ?? null}, ${JSON.stringify(event.details)}::jsonb,
      least(svc_now(), coalesce(to_timestamp(${event.occurredAtMs ?? null}::float8 / 1000), svc_now())))`.execute(
    db,
  );
}

/** Filter of a site's events; absent fields do not filter. */
export interface EventFilter {
  kind?: string | undefined;
  sensorId?: number | undefined;
  fromMs?: number | undefined;
  /** Exclusive. */
  toMs?: number | undefined;
  /** A MAC in the event. */
  mac?: string | undefined;
  /** Only events older than the event with this id. */
  after?: number | undefined;
}

/** Newest first, by the index of site and time; the id orders events with the same time, also across pages. */
export async function listEvents(
  db: Queryable,
  siteId: number,
  limit: number,
  filter: EventFilter = {},
): Promise<StoredEvent[]> {
  const { kind = null, sensorId = null, fromMs = null, toMs = null, mac = null, after = null } = filter;
  const { rows } = await sql<StoredEvent>`
    select e.id, e.kind, e.site_id, e.sensor_id, (extract(epoch from e.occurred_at) * 1000)::float8 as occurred_at_ms,
           e.details
    from events e
    where e.site_id = ${siteId}
      and (${kind}::text is null or e.kind = ${kind})
      and (${sensorId}::bigint is null or e.sensor_id = ${sensorId})
      and (${fromMs}::float8 is null or e.occurred_at >= to_timestamp(${fromMs}::float8 / 1000))
      and (${toMs}::float8 is null or e.occurred_at < to_timestamp(${toMs}::float8 / 1000))
      and (${mac}::text is null
        or e.details @> jsonb_build_object('mac_addresses', jsonb_build_array(${mac}::text)))
      and (${after}::bigint is null
        or (e.occurred_at, e.id) < (select l.occurred_at, l.id from events l where l.id = ${after}))
    order by e.occurred_at desc, e.id desc limit ${limit}`.execute(db);
  return rows;
}

/** Kinds of a site's events. */
export async function listEventKinds(db: Queryable, siteId: number): Promise<string[]> {
  const { rows } = await sql<{ kind: string }>`
    select distinct kind from events where site_id = ${siteId} order by kind`.execute(db);
  return rows.map((row) => row.kind);
}
