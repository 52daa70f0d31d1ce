/** Scan requests of operations: what it listed, what it was told, what plans say of them, and results that it does not have yet. */

import { sql } from 'kysely';
import type { ScanRequest } from '#contracts/admin-api/port-scans.ts';
import type { ScanOutcome, ScanPhase, ScanService } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ObservedPlace } from './observation-store.ts';

/** The attempt is about what was asked for: a sensor that reports another target under the id of a request moves nothing. */
const isOfRequest = sql`a.request_id = r.id and a.cluster_id = r.cluster_id and a.vm_id = r.vm_id and a.address = r.address`;

/**
 * Notes a complete listing under this revision of the connection. A request that was cancelled or has expired is never
 * revived; one that merely left the list, or was withdrawn, may come back. Those that are not listed any more end.
 */
export async function noteListing(
  trx: Queryable,
  requests: readonly ScanRequest[],
  connectionRevision: number,
): Promise<void> {
  await sql`
    insert into scan_requests as held (id, cluster_id, vm_id, allocation_id, address, assigned_at, kind, requested_at,
      expires_at, revision, connection_revision)
    select g.id, g.cluster_id, g.virtual_machine_id, g.allocation_id, g.address, g.assigned_at, g.kind, g.requested_at,
      g.expires_at, g.revision, ${connectionRevision}
    from jsonb_to_recordset(${JSON.stringify(requests)}::jsonb) as g(id uuid, cluster_id bigint, virtual_machine_id bigint,
      allocation_id bigint, address inet, assigned_at text, kind text, requested_at timestamptz, expires_at timestamptz,
      revision bigint)
    order by g.id
    on conflict (id) do update set revision = excluded.revision, connection_revision = excluded.connection_revision,
      expires_at = excluded.expires_at, listed_at = svc_now(),
      state = case when held.ended_by in ('unlisted', 'withdrawn') then 'listed' else held.state end,
      ended_at = case when held.ended_by in ('unlisted', 'withdrawn') then null else held.ended_at end,
      ended_by = case when held.ended_by in ('unlisted', 'withdrawn') then null else held.ended_by end`.execute(
    trx,
  );
  await sql`
    update scan_requests set state = 'ended', ended_by = 'unlisted', ended_at = svc_now()
    where state <> 'ended' and id <> all(${requests.map(({ id }) => id)}::uuid[])`.execute(trx);
}

/** A request that operations has to be told about. */
export interface PendingUpdate {
  id: string;
  siteId: number;
  state: 'claimed' | 'running' | 'withdrawn';
  startedAtMs: number | null;
  heartbeatAtMs: number | null;
  phase: string | null;
  percent: number | null;
}

/**
 * Requests to claim, claims that operations has not heard of for five minutes, those whose scan was started or went on since operations was told, and those that were claimed and whose
 * cluster no site has any more. The oldest first.
 */
export async function listPendingUpdates(
  db: Queryable,
  clusters: readonly { clusterId: number; siteId: number }[],
  connectionRevision: number,
  limit: number,
): Promise<PendingUpdate[]> {
  const { rows } = await sql<PendingUpdate>`
    select p.id, p.site_id, p.state, p.started_at_ms, p.heartbeat_at_ms, p.phase, p.percent from (
      select r.id, coalesce(c.site_id, r.site_id) as site_id,
        case when a.started_at is not null then 'running' when c.site_id is null then 'withdrawn' else 'claimed' end as state,
        (extract(epoch from a.started_at) * 1000)::float8 as started_at_ms,
        (extract(epoch from a.heartbeat_at) * 1000)::float8 as heartbeat_at_ms, a.phase, a.percent, r.requested_at,
        r.state = 'listed' and c.site_id is not null
          or r.state = 'claimed' and a.started_at is null and r.told_at < svc_now() - interval '5 minutes'
          or r.state = 'claimed' and a.started_at is not null and a.result_at is null
            and coalesce(r.told_heartbeat_at < greatest(a.started_at, a.heartbeat_at), true)
          or r.state = 'claimed' and a.started_at is null and c.site_id is null as is_due
      from scan_requests r
      left join unnest(${clusters.map(({ clusterId }) => clusterId)}::bigint[],
        ${clusters.map(({ siteId }) => siteId)}::bigint[]) as c(cluster_id, site_id) on c.cluster_id = r.cluster_id
      left join lateral (select * from scan_attempts a where ${isOfRequest} order by a.started_at nulls last limit 1) a on true
      where r.state <> 'ended' and r.connection_revision = ${connectionRevision}) p
    where p.is_due and p.site_id is not null order by p.requested_at, p.id limit ${limit}`.execute(db);
  return rows;
}

/** What operations answered about updates. */
export interface AnsweredUpdate {
  id: string;
  siteId: number;
  state: PendingUpdate['state'];
  /** The newest time that it was told; null for others than running. */
  heartbeatAtMs: number | null;
  outcome: string;
}

/** Writes the answers: a claim that was taken, what operations knows now, and requests that ended there. */
export async function noteAnswers(trx: Queryable, answers: readonly AnsweredUpdate[]): Promise<void> {
  await sql`
    update scan_requests r set site_id = g."siteId", told_at = svc_now(),
      state = case when g.outcome in ('accepted', 'unchanged') and g.state <> 'withdrawn' then 'claimed' else 'ended' end,
      ended_by = case when g.outcome not in ('accepted', 'unchanged') then g.outcome
        when g.state = 'withdrawn' then 'withdrawn' end,
      ended_at = case when g.outcome in ('accepted', 'unchanged') and g.state <> 'withdrawn' then null else svc_now() end,
      told_heartbeat_at = coalesce(to_timestamp(g."heartbeatAtMs" / 1000), r.told_heartbeat_at)
    from jsonb_to_recordset(${JSON.stringify(answers)}::jsonb)
      as g(id uuid, "siteId" bigint, state text, "heartbeatAtMs" float8, outcome text)
    where r.id = g.id and r.state <> 'ended'`.execute(trx);
}

/** A request of a server's address. */
export interface PlannedRequest {
  id: string;
  clusterId: number;
  serverId: number;
  address: string;
}

/**
 * Claimed requests for addresses that this sensor's plans named, without a result, the oldest first: those that are confirmed
 * under this revision of the connection, and in their window to start or started by this sensor. Nothing runs twice: what another
 * sensor has started is not among them.
 */
export async function listPlannedRequests(
  reader: Queryable,
  sensorId: number,
  connectionRevision: number,
  limit: number,
): Promise<PlannedRequest[]> {
  const { rows } = await sql<PlannedRequest>`
    select r.id, r.cluster_id, r.vm_id as server_id, host(r.address) as address
    from scan_requests r
    where r.state = 'claimed' and r.connection_revision = ${connectionRevision}
      and exists (select 1 from scan_targets t where t.sensor_id = ${sensorId} and t.cluster_id = r.cluster_id
        and t.vm_id = r.vm_id and t.address = r.address)
      and not exists (select 1 from scan_attempts a where ${isOfRequest}
        and (a.result_at is not null or a.sensor_id <> ${sensorId} and a.started_at is not null))
      and (r.expires_at > svc_now() or exists (select 1 from scan_attempts a where ${isOfRequest}
        and a.sensor_id = ${sensorId} and a.started_at is not null))
    order by r.requested_at, r.id limit ${limit}`.execute(reader);
  return rows;
}

/**
 * Requests that ended in operations before their result, of addresses that this sensor's plans named. A scan that has
 * started may finish where the request merely left the list (NET-1.6).
 */
export async function listWithdrawn(reader: Queryable, sensorId: number, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select r.id from scan_requests r
    where r.state = 'ended' and r.ended_at > svc_now() - ${sql.lit(kept.scans)}::interval
      and exists (select 1 from scan_targets t where t.sensor_id = ${sensorId} and t.cluster_id = r.cluster_id
        and t.vm_id = r.vm_id and t.address = r.address)
      and not exists (select 1 from scan_attempts a where ${isOfRequest}
        and (a.result_at is not null or r.ended_by = 'unlisted' and a.started_at is not null))
    order by r.ended_at desc, r.id limit ${limit}`.execute(reader);
  return rows.map(({ id }) => id);
}

/** Names a result: another sensor that reports under the same id reports about its own targets. */
export interface ReportedResult {
  scanId: string;
  sensorId: number;
}

/** A result as its sensor reported it. */
export interface DeliverableScan extends ReportedResult, Omit<ObservedPlace, 'sensorId'> {
  /** Of the request that it answers; null: the sensor's own scan, whose allocation is the one of that time. */
  request: { id: string; allocationId: number; assignedAt: string } | null;
  startedAtMs: number;
  finishedAtMs: number;
}

/** More are delivered by the next ticks. */
const listedMax = 5_000;

const services = (scan: string) => sql`jsonb_to_recordset(${sql.ref(`${scan}.services`)}) as`;
const identified = (service: string) =>
  sql`(${sql.ref(`${service}.method`)} = 'probed' and ${sql.ref(`${service}.service`)} is distinct from 'tcpwrapped')`;
/** A port that scan `a` identified, and the newer scan `n` did not. */
const losesIdentification = sql`exists (
  select from ${services('a')} s(transport text, port int, method text, service text)
  left join ${services('n')} t(transport text, port int, method text, service text)
    on t.transport = s.transport and t.port = s.port
  where ${identified('s')} and (t.port is null or not ${identified('t')}))`;

/**
 * Results of requests that are confirmed under this revision of the connection, each until it is acknowledged; and of a
 * sensor's own scans those that no newer complete scan of the same address and profile replaces: a partial one does not say
 * what it did not ask, and one that did not identify a service does not say what it is (NET-2.7.5). Results of requests and own scans never replace each other (NET-2.7.9).
 */
export async function listDeliverable(
  db: Queryable,
  clusterIds: readonly number[],
  connectionRevision: number,
): Promise<DeliverableScan[]> {
  const { rows } = await sql<DeliverableScan>`
    select distinct on (a.scan_id) a.scan_id, a.sensor_id, a.site_id, a.cluster_id, a.vm_id as server_id,
      host(a.address) as address, coalesce(a.profile, 'common') as profile,
      case when r.id is null then null else json_build_object('id', r.id, 'allocationId', r.allocation_id,
        'assignedAt', r.assigned_at) end as request,
      floor(extract(epoch from a.started_at) * 1000)::float8 as started_at_ms,
      floor(extract(epoch from a.finished_at) * 1000)::float8 as finished_at_ms
    from scan_attempts a
    left join scan_requests r on r.id = a.request_id and r.cluster_id = a.cluster_id and r.vm_id = a.vm_id
      and r.address = a.address and r.connection_revision = ${connectionRevision}
    where a.result_at is not null and a.delivered_at is null and a.cluster_id = any(${[...clusterIds]}::bigint[])
      and a.profile is not null and a.started_at is not null and a.finished_at is not null
      and a.reported_at > svc_now() - ${sql.lit(kept.scans)}::interval
      and case when a.request_id is not null then r.id is not null else not exists (
        select 1 from scan_attempts n where n.cluster_id = a.cluster_id and n.vm_id = a.vm_id and n.address = a.address
          and n.request_id is null and n.profile = a.profile and n.state = 'complete' and n.result_at is not null
          and (n.finished_at, n.scan_id) > (a.finished_at, a.scan_id) and not ${losesIdentification}) end
    order by a.scan_id, a.reported_at, a.sensor_id limit ${listedMax}`.execute(db);
  return rows;
}

/** The rest of a result. */
export interface ScanBody {
  scanId: string;
  state: ScanOutcome;
  phases: ScanPhase[];
  services: ScanService[];
  notes: string[];
}

/** Of these results exactly: what another sensor reported under the same id is not theirs. */
export async function readBodies(db: Queryable, results: readonly ReportedResult[]): Promise<ScanBody[]> {
  const { rows } = await sql<ScanBody>`
    select a.scan_id, a.state, a.phases, a.services, a.notes
    from unnest(${results.map(({ sensorId }) => sensorId)}::bigint[], ${results.map(({ scanId }) => scanId)}::uuid[])
      as g(sensor_id, scan_id)
    join scan_attempts a on a.sensor_id = g.sensor_id and a.scan_id = g.scan_id
    where a.result_at is not null order by a.scan_id`.execute(db);
  return rows;
}

/** Operations answered about these results for good. */
export async function noteDelivered(
  trx: Queryable,
  delivered: readonly { scanId: string; outcome: string }[],
): Promise<void> {
  await sql`
    update scan_attempts a set delivered_at = svc_now(), delivery_outcome = g.outcome
    from unnest(${delivered.map(({ scanId }) => scanId)}::uuid[], ${delivered.map(({ outcome }) => outcome)}::text[])
      as g(scan_id, outcome)
    where a.scan_id = g.scan_id and a.result_at is not null and a.delivered_at is null`.execute(trx);
}
