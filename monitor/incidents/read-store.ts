/** Incidents for people and for operations: lists, one incident with all that belongs to it, what was delivered. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Incident, IncidentAction, ReportedIncident, TransitionKind } from './incident.ts';

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
    select ${incidentColumns}, i.delivered_revision, ${ms('i.delivered_at')} as delivered_at_ms, i.delivery_outcome
    from incidents i where i.site_id = ${siteId} and i.id = ${id}::uuid`.execute(db);
  const [row] = rows;
  if (!row) return null;
  const { deliveredRevision, deliveredAtMs, deliveryOutcome, ...rest } = row;
  return { ...toIncident(rest), deliveredRevision, deliveredAtMs, deliveryOutcome };
}

/** What one sensor sees of an incident. */
export interface SensorView {
  sensorId: number;
  said: ReportedIncident;
  receivedAtMs: number;
}

export async function listSensorViews(db: Queryable, incidentId: string): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select sensor_id, said, ${ms('received_at')} as received_at_ms from incident_observations
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
    select kind, ${ms('at')} as at_ms, details from incident_transitions
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
    select site_id, said ->> 'capture' as capture, ${ms('ends_at')} as ends_at_ms,
      sensor_id = ${sensorId}::bigint as is_own, is_foreign
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
    select r.prefix, max(r.share) as share, (extract(epoch from min(r.first_at)) * 1000)::float8 as first_at_ms,
      (extract(epoch from max(r.last_at)) * 1000)::float8 as last_at_ms
    from incident_observations o join incident_remotes r on r.observation = o.id
    where o.incident_id = ${incidentId}::uuid group by r.prefix order by 2 desc, 1
    limit ${limit}`.execute(db);
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
    select (p.at / ${stepMs}::bigint * ${stepMs}::bigint)::float8 as at_ms, max(p.bps)::float8 as bps, max(p.pps)::float8 as pps
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
    select site_id, (count(*) filter (where severity = 'attack' and state = 'active'))::int as attacks,
      (count(*) filter (where severity = 'attack' and state = 'stale'))::int as stale,
      (count(*) filter (where severity = 'info'))::int as info
    from incidents where state <> 'recovered' and merged_into is null and not is_withdrawn and not is_drill
    group by site_id`.execute(db);
  return rows;
}

/** What sensors of a site said of other nodes' servers, the newest first. */
export async function listForeign(db: Queryable, siteId: number, limit: number): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select sensor_id, said, ${ms('received_at')} as received_at_ms from incident_observations
    where site_id = ${siteId} and incident_id is null and is_foreign
    order by ends_at desc, id limit ${limit}`.execute(db);
  return rows;
}

/**
 * Replaces the actions of incidents; one that changes gets a higher revision and is delivered again. The caller holds the
 * lock of their site (`lockSites`), or a revision could be given twice.
 */
export async function setIncidentActions(
  trx: Queryable,
  given: readonly { id: string; actions: readonly IncidentAction[] }[],
): Promise<void> {
  await sql`
    update incidents i set actions = g.actions, revision = i.revision + 1, changed_at = svc_now()
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(id uuid, actions jsonb)
    where i.id = g.id and i.actions <> g.actions`.execute(trx);
}

/** How statements read an incident (`incidents i`). */
export const incidentColumns = sql`i.id, i.site_id, i.target_kind, i.target as target_value, i.target_key,
  i.direction, i.severity, i.class, i.is_drill, i.revision, i.state, ${ms('i.started_at')} as started_at_ms,
  ${ms('i.detected_at')} as detected_at_ms, ${ms('i.last_observed_at')} as last_observed_at_ms,
  ${ms('i.recovered_at')} as recovered_at_ms, i.measured, i.correlation_id, i.merged_into, i.is_withdrawn,
  i.actions`;

export type IncidentRow = Omit<Incident, 'target'> & {
  targetKind: Incident['target']['kind'];
  targetValue: string;
};

export function toIncident({ targetKind, targetValue, ...row }: IncidentRow): Incident {
  return { ...row, target: { kind: targetKind, value: targetValue } };
}

export interface DeliverableIncident extends Incident {
  /** Operations has not answered about this revision. */
  isPending: boolean;
}

/** An answer of operations about a revision. */
export interface Delivery {
  id: string;
  revision: number;
  outcome: string;
}

/** More are delivered by the next ticks; the oldest changes first. */
const listedMax = 10_000;

/** Host incidents of these sites that are pending or active. An attack that turned out to be of another node's server is never new here. */
export async function listDeliverable(
  db: Queryable,
  siteIds: readonly number[],
): Promise<DeliverableIncident[]> {
  const { rows } = await sql<IncidentRow & { isPending: boolean }>`
    select ${incidentColumns}, i.delivered_revision < i.revision as is_pending from incidents i
    where i.site_id = any(${[...siteIds]}::bigint[]) and i.target_kind = 'host' and (i.delivered_revision < i.revision or i.state = 'active')
      and not (i.is_withdrawn and i.delivered_revision = 0)
    order by i.delivered_revision = i.revision, i.changed_at, i.id limit ${listedMax}`.execute(db);
  return rows.map(({ isPending, ...row }) => ({ ...toIncident(row), isPending }));
}

export async function noteDelivered(trx: Queryable, delivered: readonly Delivery[]): Promise<void> {
  await sql`
    update incidents i set delivered_revision = greatest(i.delivered_revision, g.revision), delivered_at = svc_now(),
      delivery_outcome = g.outcome
    from jsonb_to_recordset(${JSON.stringify(delivered)}::jsonb) as g(id uuid, revision int, outcome text)
    where i.id = g.id`.execute(trx);
}
