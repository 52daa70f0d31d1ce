/** Incidents for people: lists, one incident with all that belongs to it. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Incident, Said, TransitionKind } from './incident.ts';
import { type IncidentRow, incidentColumns, toIncident } from './incident-columns-store.ts';

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** Which incidents a list has; absent fields do not filter. Withdrawn and merged ones are in no list. */
export interface IncidentFilter {
  siteId?: number | undefined;
  state?: string | undefined;
  severity?: string | undefined;
  class?: string | undefined;
  /** Exactly this host. */
  address?: string | undefined;
  correlationId?: string | undefined;
  /** Only incidents that come after this one in the list. */
  after?: string | undefined;
}

/** Open ones first, then the newest. */
export async function listIncidentsFor(
  db: Queryable,
  filter: IncidentFilter,
  limit: number,
): Promise<Incident[]> {
  const { siteId = null, state = null, severity = null, address = null, correlationId = null } = filter;
  const { class: name = null, after = null } = filter;
  const { rows } = await sql<IncidentRow>`
    select ${incidentColumns} from incidents i
    where (${siteId}::bigint is null or i.site_id = ${siteId}::bigint)
      and (${state}::text is null or i.state = ${state}::text)
      and (${severity}::text is null or i.severity = ${severity}::text)
      and (${name}::text is null or i.class = ${name}::text)
      and (${address}::text is null or i.target_kind = 'host' and i.target = ${address}::text)
      and (${correlationId}::uuid is null or i.correlation_id = ${correlationId}::uuid)
      and (${after}::uuid is null or exists (select 1 from incidents l where l.id = ${after}::uuid
        and (i.state = 'recovered' and l.state <> 'recovered' or (i.state = 'recovered') = (l.state = 'recovered')
          and (i.started_at, i.id) < (l.started_at, l.id))))
      and i.merged_into is null and not i.is_withdrawn
    order by i.state = 'recovered', i.started_at desc, i.id desc limit ${limit}`.execute(db);
  return rows.map(toIncident);
}

/** An incident, and what operations made of it. */
export interface StoredIncident extends Incident {
  deliveredRevision: number;
  deliveredAtMs: number | null;
  deliveryOutcome: string | null;
}

export async function findIncident(
  db: Queryable,
  siteId: number,
  id: string,
): Promise<StoredIncident | null> {
  const { rows } = await sql<
    IncidentRow & Pick<StoredIncident, 'deliveredRevision' | 'deliveredAtMs' | 'deliveryOutcome'>
  >`
    select ${incidentColumns}, i.delivered_revision as "deliveredRevision", ${ms('i.delivered_at')} as "deliveredAtMs",
      i.delivery_outcome as "deliveryOutcome"
    from incidents i where i.site_id = ${siteId} and i.id = ${id}::uuid`.execute(db);
  const [row] = rows;
  if (!row) return null;
  const { deliveredRevision, deliveredAtMs, deliveryOutcome, ...rest } = row;
  return { ...toIncident(rest), deliveredRevision, deliveredAtMs, deliveryOutcome };
}

/** What one sensor sees of an incident. */
export interface SensorView {
  sensorId: number;
  said: Said;
  receivedAtMs: number;
}

export async function listSensorViews(db: Queryable, incidentId: string): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select sensor_id as "sensorId", said, ${ms('received_at')} as "receivedAtMs" from incident_observations
    where incident_id = ${incidentId}::uuid order by started_at, sensor_id, id limit 500`.execute(db);
  return rows;
}

export interface StoredTransition {
  kind: TransitionKind;
  atMs: number;
  details: Record<string, unknown>;
}

export async function listTransitions(db: Queryable, incidentId: string): Promise<StoredTransition[]> {
  const { rows } = await sql<StoredTransition>`
    select kind, ${ms('at')} as "atMs", details from incident_transitions
    where incident_id = ${incidentId}::uuid order by id limit 1000`.execute(db);
  return rows;
}

/** An incident of a sensor. */
export interface FoundObservation {
  siteId: number;
  capture: string;
  /** Of the last observation or, once it is over, of the recovery. */
  endsAtMs: number;
}

/**
 * What this sensor observed under this id. `unknown`: nothing yet, or an attack on another node's server; `of_another`:
 * only other sensors have it.
 */
export async function findObservation(
  db: Queryable,
  sensorId: number,
  observationId: string,
): Promise<FoundObservation | 'unknown' | 'of_another'> {
  const { rows } = await sql<FoundObservation & { isOwn: boolean; isForeign: boolean }>`
    select site_id as "siteId", said ->> 'capture' as capture, ${ms('ends_at')} as "endsAtMs",
      sensor_id = ${sensorId}::bigint as "isOwn", is_foreign as "isForeign"
    from incident_observations where observation_id = ${observationId}::uuid`.execute(db);
  const own = rows.filter(({ isOwn }) => isOwn);
  if (own.length === 0) return rows.length === 0 ? 'unknown' : 'of_another';
  const counted = own.find(({ isForeign }) => !isForeign);
  if (!counted) return 'unknown';
  const { siteId, capture, endsAtMs } = counted;
  return { siteId, capture, endsAtMs };
}

export interface RemotePrefix {
  prefix: string;
  /** The largest share of the packets that a capture saw of it. */
  share: number;
  firstAtMs: number;
  lastAtMs: number;
}

/** Sources of an inbound incident, destinations of an outbound one; the heaviest first. */
export async function listRemotes(db: Queryable, incidentId: string, limit: number): Promise<RemotePrefix[]> {
  const { rows } = await sql<RemotePrefix>`
    select r.prefix, max(r.share) as share, (extract(epoch from min(r.first_at)) * 1000)::float8 as "firstAtMs",
      (extract(epoch from max(r.last_at)) * 1000)::float8 as "lastAtMs"
    from incident_observations o join incident_remotes r on r.observation = o.id
    where o.incident_id = ${incidentId}::uuid group by r.prefix order by 2 desc, 1 limit ${limit}`.execute(
    db,
  );
  return rows;
}

export interface CurvePoint {
  atMs: number;
  bps: number;
  pps: number;
}

/** The rates of the strongest capture in steps of so many milliseconds: of each step its largest second. */
export async function readCurve(db: Queryable, incidentId: string, stepMs: number): Promise<CurvePoint[]> {
  const { rows } = await sql<CurvePoint>`
    select (p.at / ${stepMs}::bigint * ${stepMs}::bigint)::float8 as "atMs", max(p.bps)::float8 as bps, max(p.pps)::float8 as pps
    from incident_observations o
    join incident_seconds s on s.observation = o.id
    cross join lateral unnest(s.at, s.bps, s.pps) as p(at, bps, pps)
    where o.incident_id = ${incidentId}::uuid group by 1 order by 1`.execute(db);
  return rows;
}

/** Incidents of a site that are not over. */
export interface OpenCounts {
  siteId: number;
  attacks: number;
  stale: number;
  info: number;
}

export async function countOpen(db: Queryable): Promise<OpenCounts[]> {
  const { rows } = await sql<OpenCounts>`
    select site_id as "siteId", (count(*) filter (where severity = 'attack' and state = 'active'))::int as attacks,
      (count(*) filter (where severity = 'attack' and state = 'stale'))::int as stale,
      (count(*) filter (where severity = 'info'))::int as info
    from incidents where state <> 'recovered' and merged_into is null and not is_withdrawn and not is_drill
    group by site_id`.execute(db);
  return rows;
}

/** What sensors of a site said of other nodes' servers, the newest first. */
export async function listForeign(db: Queryable, siteId: number, limit: number): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select sensor_id as "sensorId", said, ${ms('received_at')} as "receivedAtMs" from incident_observations
    where site_id = ${siteId} and incident_id is null and is_foreign order by ends_at desc, id limit ${limit}`.execute(
    db,
  );
  return rows;
}
