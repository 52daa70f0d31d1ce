/** Every statement that stores or reads incidents of servers. */

import { type RawBuilder, sql } from 'kysely';
import type { Incident, IncidentAction } from '#contracts/admin-api/incidents.ts';
import { attackClassOf } from '#contracts/attack-classes.ts';
import { kept } from '#contracts/retention.ts';
import { mailableMembers } from '#operations/views/alert-mail-store.ts';
import { incidentStateNow } from '#operations/views/attack-list-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AlertChannel } from '../settings/index.ts';
import type { Source } from '../traffic/source-store.ts';
import type { IncidentFilter, IncidentQuery, IncidentRow, Refusal } from './incident.ts';

/** A source that has delivered nothing for so long loses its incidents to the next one (as `claimSeries` does). */
const silence = sql.lit('15 minutes');
/** NET-8.R2. */
const keptFor = sql.lit(kept.attacks);
/** Refusals are for operators who look for a wrong mapping now. */
const refusalsKeptFor = sql.lit('7 days');

/** What a delivery is compared with. */
export interface HeldIncident {
  allocationId: number;
  serverId: number;
  tenantId: number;
  address: string;
  revision: number;
  state: IncidentRow['state'];
  recoveredAt: Date | null;
  actions: IncidentAction[];
  isOwner: boolean;
  isSilent: boolean;
}

/** The incident, locked until the transaction ends; null before the first delivery. */
export async function lockIncident(tx: Queryable, id: string, source: Source): Promise<HeldIncident | null> {
  const { rows } = await sql<HeldIncident>`
    select allocation_id, server_id, tenant_id, address, revision, state, actions, recovered_at,
      project_id = ${source.projectId} and source_site_id = ${source.siteId} as is_owner,
      source_seen_at <= svc_now() - ${silence}::interval as is_silent
    from protect_incidents where incident_id = ${id}::uuid for update`.execute(tx);
  return rows[0] ?? null;
}

/** Whether another source told of an incident of this generation within the last 15 minutes. Deliveries of it wait in turn. */
export async function hasOtherSource(tx: Queryable, allocationId: number, source: Source): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(7318031, hashint8(${allocationId}::bigint))`.execute(tx);
  const { rows } = await sql<{ exists: boolean }>`
    select exists (select 1 from protect_incidents
      where allocation_id = ${allocationId} and source_seen_at > svc_now() - ${silence}::interval
        and (project_id, source_site_id) <> (${source.projectId}::bigint, ${source.siteId}::bigint)) as exists`.execute(
    tx,
  );
  return rows[0]!.exists;
}

/** True when the incident is older than incidents are kept. */
export async function isExpired(tx: Queryable, lastObservedAt: string): Promise<boolean> {
  const { rows } = await sql<{ isExpired: boolean }>`
    select ${lastObservedAt}::timestamptz < svc_now() - ${keptFor}::interval as is_expired`.execute(tx);
  return rows[0]!.isExpired;
}

/** What each delivery says anew. Times are cut to milliseconds, so that a list's cursor is exact. */
function said(incident: Incident): [column: string, value: RawBuilder<unknown>][] {
  const at = (stamp: string) => sql`${new Date(stamp)}::timestamptz`;
  const isRecovered = incident.state === 'recovered';
  const { current, peak, totals } = incident;
  const vectors = incident.vectors.map((vector) => ({ ...vector, class: attackClassOf(vector.class) }));
  return [
    ['revision', sql`${incident.revision}::bigint`],
    ['direction', sql`${incident.direction}`],
    ['class', sql`${attackClassOf(incident.class)}`],
    ['severity', sql`${incident.severity}`],
    ['vectors', sql`${JSON.stringify(vectors)}::jsonb`],
    ['state', sql`${incident.state}`],
    ['started_at', at(incident.started_at)],
    ['detected_at', at(incident.detected_at)],
    ['last_observed_at', at(incident.last_observed_at)],
    ['recovered_at', isRecovered ? at(incident.recovered_at!) : sql`null::timestamptz`],
    ['current_bps', sql`${current?.bps ?? null}::float8`],
    ['current_pps', sql`${current?.pps ?? null}::float8`],
    ['peak_bps', sql`${peak.bps}::float8`],
    ['peak_bps_at', at(peak.bps_at)],
    ['peak_pps', sql`${peak.pps}::float8`],
    ['peak_pps_at', at(peak.pps_at)],
    ['total_bytes', sql`${totals.bytes}::bigint`],
    ['total_packets', sql`${totals.packets}::bigint`],
    ['coverage', sql`${incident.coverage}`],
    ['is_drill', sql`${incident.drill}`],
    ['actions', sql`${JSON.stringify(incident.actions)}::jsonb`],
  ];
}

/** Binds a new incident to its generation; false when another delivery has just done so. */
export async function insertIncident(
  tx: Queryable,
  allocation: { id: number; tenantId: number; serverId: number; address: string },
  source: Source,
  incident: Incident,
): Promise<boolean> {
  const columns = said(incident);
  const { rows } = await sql`
    insert into protect_incidents (incident_id, project_id, source_site_id, allocation_id, tenant_id, server_id, address,
      ${sql.join(columns.map(([name]) => sql.ref(name)))})
    values (${incident.id}::uuid, ${source.projectId}, ${source.siteId}, ${allocation.id}, ${allocation.tenantId},
      ${allocation.serverId}, ${allocation.address}, ${sql.join(columns.map(([, value]) => value))})
    on conflict (incident_id) do nothing returning 1`.execute(tx);
  return rows.length === 1;
}

/** Applies a later revision; what the incident is bound to stays. */
export async function updateIncident(tx: Queryable, source: Source, incident: Incident): Promise<void> {
  const changes = said(incident).map(([name, value]) => sql`${sql.ref(name)} = ${value}`);
  await sql`
    update protect_incidents set ${sql.join(changes)}, changed_at = svc_now(), source_seen_at = svc_now(),
      project_id = ${source.projectId}, source_site_id = ${source.siteId}
    where incident_id = ${incident.id}::uuid and revision < ${incident.revision}`.execute(tx);
}

/** Notes that the source still delivers, at most once a minute. */
export async function touchIncident(tx: Queryable, id: string): Promise<void> {
  await sql`update protect_incidents set source_seen_at = svc_now()
    where incident_id = ${id}::uuid and source_seen_at < svc_now() - interval '1 minute'`.execute(tx);
}

/** Notes what was not applied, for operators; a repetition at most once a minute. */
export async function noteRefusal(
  tx: Queryable,
  source: Source,
  { id, revision, target, class: name }: Incident,
  outcome: Refusal,
): Promise<void> {
  await sql`
    insert into protect_incident_refusals as held (project_id, source_site_id, incident_id, outcome, revision, target_kind,
      target, class)
    values (${source.projectId}, ${source.siteId}, ${id}::uuid, ${outcome}, ${revision}, ${target.kind},
      ${target.value.replaceAll('\u0000', '\ufffd')}, ${name})
    on conflict (project_id, source_site_id, incident_id) do update set outcome = excluded.outcome,
      revision = excluded.revision, target_kind = excluded.target_kind, target = excluded.target, class = excluded.class,
      refused_at = svc_now()
    where held.outcome <> excluded.outcome or held.refused_at < svc_now() - interval '1 minute'`.execute(tx);
}

/** An incident that was applied after all is no refusal any more. */
export async function forgetRefusal(tx: Queryable, { projectId, siteId }: Source, id: string): Promise<void> {
  await sql`delete from protect_incident_refusals
    where project_id = ${projectId} and source_site_id = ${siteId} and incident_id = ${id}::uuid`.execute(tx);
}

/** Deletes at most `limit` expired incidents; returns how many. Refusals go with them. */
export async function deleteExpired(tx: Queryable, limit: number): Promise<number> {
  await sql`delete from protect_incident_refusals where refused_at < svc_now() - ${refusalsKeptFor}::interval`.execute(
    tx,
  );
  const { numAffectedRows } = await sql`
    delete from protect_incidents where incident_id in (
      select incident_id from protect_incidents
      where last_observed_at < svc_now() - ${keptFor}::interval limit ${limit})`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}

const isStale = sql`(${incidentStateNow} = 'stale')`;

const columns = sql`incident_id as id, server_id, tenant_id, address, direction, class, severity, vectors,
  ${incidentStateNow} as state, started_at, detected_at, last_observed_at, recovered_at,
  case when not ${isStale} then current_bps end as current_bps,
  case when not ${isStale} then current_pps end as current_pps, peak_bps, peak_bps_at, peak_pps, peak_pps_at,
  total_bytes, total_packets,
  case when ${isStale} then 'unknown' else coverage end as coverage, is_drill, actions, alerted_at,
  alerted_by`;

type Owner = { serverId: number; tenantId: number };

function conditionsOf(of: Owner, { states, severity, range }: IncidentFilter): RawBuilder<unknown>[] {
  return [
    sql`server_id = ${of.serverId} and tenant_id = ${of.tenantId}`,
    ...(states ? [sql`${incidentStateNow} = any(${[...states]}::text[])`] : []),
    ...(severity ? [sql`severity = ${severity}`] : []),
    ...(range
      ? [
          sql`started_at < ${new Date(range.toMs)} and coalesce(recovered_at, 'infinity') > ${new Date(range.fromMs)}`,
        ]
      : []),
  ];
}

/** Incidents of one server in this tenant, newest first. */
export async function listIncidents(
  db: Queryable,
  of: Owner,
  { after, limit, ...filter }: IncidentQuery,
): Promise<IncidentRow[]> {
  const conditions = [
    ...conditionsOf(of, filter),
    ...(after
      ? [sql`(started_at, incident_id) < (${new Date(after.startedMs)}::timestamptz, ${after.id}::uuid)`]
      : []),
  ];
  const { rows } = await sql<IncidentRow>`
    select ${columns} from protect_incidents i where ${sql.join(conditions, sql` and `)}
    order by started_at desc, incident_id desc limit ${limit}`.execute(db);
  return rows;
}

export async function countIncidents(db: Queryable, of: Owner, filter: IncidentFilter): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from protect_incidents i
    where ${sql.join(conditionsOf(of, filter), sql` and `)}`.execute(db);
  return rows[0]!.count;
}

export async function findIncident(
  db: Queryable,
  of: { serverId: number; tenantId: number },
  id: string,
): Promise<IncidentRow | null> {
  const { rows } = await sql<IncidentRow>`
    select ${columns} from protect_incidents i
    where incident_id = ${id}::uuid and server_id = ${of.serverId} and tenant_id = ${of.tenantId}`.execute(
    db,
  );
  return rows[0] ?? null;
}

/** The open attacks of a server in short: whether one is active, and whether one of them comes in. */
export interface OpenAttack {
  serverId: number;
  isActive: boolean;
  isInbound: boolean;
  isDrill: boolean;
}

/** By server, for those that have an open attack with news within a day; customers see none of servers whose views they switched off. */
export async function listOpen(
  db: Queryable,
  serverIds: readonly number[],
  tenantIds: readonly number[] | 'all',
): Promise<OpenAttack[]> {
  const ofOwner =
    tenantIds === 'all'
      ? sql`true`
      : sql`tenant_id = any(${[...tenantIds]}::bigint[]) and not exists (
          select 1 from protect_settings c where c.server_id = i.server_id and not c.views_on)`;
  const { rows } = await sql<OpenAttack>`
    select server_id, bool_or(${incidentStateNow} = 'active') as is_active,
      bool_or(direction = 'inbound') as is_inbound, bool_and(is_drill) as is_drill
    from protect_incidents i
    where state <> 'recovered' and severity = 'attack' and last_observed_at > svc_now() - interval '1 day'
      and server_id = any(${[...serverIds]}::bigint[]) and ${ofOwner}
    group by server_id`.execute(db);
  return rows;
}

export interface RefusalRow {
  incidentId: string;
  siteId: number;
  outcome: Refusal;
  targetKind: string;
  target: string;
  class: string;
  refusedAt: Date;
}

/** The newest incidents of a project that were not applied, within a week. */
export async function listRefusals(db: Queryable, projectId: number, limit: number): Promise<RefusalRow[]> {
  const { rows } = await sql<RefusalRow>`
    select incident_id, source_site_id as site_id, outcome, target_kind, target, class, refused_at
    from protect_incident_refusals where project_id = ${projectId} order by refused_at desc, incident_id limit ${limit}`.execute(
    db,
  );
  return rows;
}

/** How many incidents of a project had each outcome within a week. */
export async function countOutcomes(
  db: Queryable,
  projectId: number,
): Promise<{ outcome: 'applied' | Refusal; count: number }[]> {
  const { rows } = await sql<{ outcome: 'applied' | Refusal; count: number }>`
    select outcome, count(*) as count from protect_incident_refusals
    where project_id = ${projectId} and refused_at > svc_now() - ${refusalsKeptFor}::interval group by outcome
    union all
    select 'applied', count(*) from protect_incidents
    where project_id = ${projectId} and changed_at > svc_now() - ${refusalsKeptFor}::interval`.execute(db);
  return rows;
}

/** What the customer was told so far, of the present episode. */
export interface Told {
  episode: number;
  isStartTold: boolean;
  isEndTold: boolean;
  told: AlertChannel[];
}

/** The mark of an incident that the caller has locked. */
export async function readTold(tx: Queryable, incidentId: string): Promise<Told> {
  const { rows } = await sql<Told>`
    select episode, start_told_at is not null as is_start_told, end_told_at is not null as is_end_told, told
    from protect_incidents where incident_id = ${incidentId}::uuid`.execute(tx);
  return rows[0]!;
}

/** Notes that the start of this episode is told by these channels, and which of them have a recipient. */
export async function noteStart(
  tx: Queryable,
  incidentId: string,
  episode: number,
  told: readonly AlertChannel[],
  reached: readonly AlertChannel[],
): Promise<void> {
  await sql`
    update protect_incidents set episode = ${episode}, start_told_at = svc_now(), end_told_at = null,
      told = ${[...told]}::text[], alerted_at = case when ${reached.length > 0} then svc_now() else alerted_at end,
      alerted_by = case when ${reached.length > 0} then ${[...reached]}::text[] else alerted_by end
    where incident_id = ${incidentId}::uuid`.execute(tx);
}

export async function noteEnd(tx: Queryable, incidentId: string): Promise<void> {
  await sql`update protect_incidents set end_told_at = svc_now() where incident_id = ${incidentId}::uuid`.execute(
    tx,
  );
}

/** A mail about the start for each member who may be mailed; returns how many. */
export async function queueStartMails(
  tx: Queryable,
  incidentId: string,
  episode: number,
  serverId: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into attack_mails (incident_id, episode, moment, person_id)
    select ${incidentId}::uuid, ${episode}::int, 'started', reader.id from (${mailableMembers(serverId)}) reader
    on conflict do nothing`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}

/** A mail about the end for each reader who was mailed the start. */
export async function queueEndMails(tx: Queryable, incidentId: string, episode: number): Promise<void> {
  await sql`
    insert into attack_mails (incident_id, episode, moment, person_id)
    select incident_id, episode, 'ended', person_id from attack_mails
    where incident_id = ${incidentId}::uuid and episode = ${episode} and moment = 'started'
    on conflict do nothing`.execute(tx);
}

export interface IncidentStatus {
  /** Of a delivery, also one that was refused or repeated. */
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** The newest observation that was received. */
  latestAt: Date | null;
  /** Of the last 24 hours. */
  incidents: number;
  addresses: number;
  /** The last delivery was about another address, or came from another source. */
  isRefused: boolean;
}

/** How the delivery of attacks of a server stands (NET-2.9, NET-4.10). */
export async function readStatus(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<IncidentStatus> {
  const { rows } = await sql<IncidentStatus>`
    with held as (
      select address, last_observed_at, source_seen_at, (select max(refused_at) from protect_incident_refusals r
        where r.incident_id = i.incident_id and r.outcome = 'identity_conflict') as refused_at
      from protect_incidents i where server_id = ${of.serverId} and tenant_id = ${of.tenantId})
    select max(greatest(source_seen_at, refused_at)) as attempted_at, max(source_seen_at) as received_at,
      max(last_observed_at) as latest_at,
      count(*) filter (where last_observed_at > svc_now() - interval '24 hours')::int as incidents,
      count(distinct address) filter (where last_observed_at > svc_now() - interval '24 hours')::int as addresses,
      coalesce(max(refused_at) > max(source_seen_at), false) as is_refused
    from held`.execute(db);
  return rows[0]!;
}
