/** Results that operations does not have yet. */

import { sql } from 'kysely';
import type { ScanOutcome, ScanPhase, ScanProfile, ScanService } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Names a result: another sensor that reports under the same id reports about its own targets. */
export interface ReportedResult {
  scanId: string;
  sensorId: number;
}

/** A result as its sensor reported it. */
export interface DeliverableScan extends ReportedResult {
  siteId: number;
  clusterId: number;
  vmId: number;
  address: string;
  profile: ScanProfile;
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
    select distinct on (a.scan_id) a.scan_id as "scanId", a.sensor_id as "sensorId", a.site_id as "siteId", a.cluster_id as "clusterId",
      a.vm_id as "vmId", host(a.address) as address, coalesce(a.profile, 'common') as profile,
      case when r.id is null then null else json_build_object('id', r.id, 'allocationId', r.allocation_id,
        'assignedAt', r.assigned_at) end as request,
      floor(extract(epoch from a.started_at) * 1000)::float8 as "startedAtMs",
      floor(extract(epoch from a.finished_at) * 1000)::float8 as "finishedAtMs"
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
    select a.scan_id as "scanId", a.state, a.phases, a.services, a.notes
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
