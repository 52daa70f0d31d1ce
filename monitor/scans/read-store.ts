/** What pages and alerts read of port scans. */

import { sql } from 'kysely';
import type { ScanPhase, ScanProfile } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { ScanPool } from '#contracts/sensor-api/port-scans.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { joinIdentification, knownColumns, type ServiceEvidenceAt } from './observation-store.ts';

const ms = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** A scan as its sensor reported it. */
export interface ScanAttempt {
  scanId: string;
  sensorId: number;
  clusterId: number;
  serverId: number;
  address: string;
  /** Null: the sensor's own. */
  requestId: string | null;
  profile: ScanProfile | null;
  pool: ScanPool | null;
  state: 'running' | 'complete' | 'partial';
  startedAtMs: number | null;
  finishedAtMs: number | null;
  /** When the newest report of it arrived. */
  reportedAtMs: number;
  phase: string | null;
  percent: number | null;
  pausedFor: string | null;
  packetsPerSecond: number | null;
  packets: number | null;
  pauses: number;
  pausedSeconds: number;
  phases: ScanPhase[];
  notes: string[];
  /** Open ports: of the result, or so far. */
  openPorts: number;
  deliveryOutcome: string | null;
}

/** Of a site, those that run and the newest first. */
export async function listAttempts(db: Queryable, siteId: number, limit: number): Promise<ScanAttempt[]> {
  const { rows } = await sql<ScanAttempt>`
    select a.scan_id, a.sensor_id, a.cluster_id, a.vm_id as server_id, host(a.address) as address, a.request_id,
      a.profile, a.pool, a.state, ${ms('a.started_at')} as started_at_ms, ${ms('a.finished_at')} as finished_at_ms,
      ${ms('a.reported_at')} as reported_at_ms, a.phase, a.percent, a.paused_for, a.packets_per_second, a.packets,
      jsonb_array_length(a.pauses)::int as pauses,
      (select coalesce(sum(extract(epoch from p.ended_at - p.started_at)), 0)::float8
        from jsonb_to_recordset(a.pauses) as p(started_at timestamptz, ended_at timestamptz)) as paused_seconds,
      a.phases, a.notes, a.delivery_outcome,
      case when a.result_at is null then jsonb_array_length(a.found) else jsonb_array_length(a.services) end::int as open_ports
    from scan_attempts a where a.site_id = ${siteId}
    order by a.result_at is not null, a.reported_at desc, a.scan_id limit ${limit}`.execute(db);
  return rows;
}

/** An open port of a server's address, by the newer of its two observations. */
export interface OpenPort extends Omit<ServiceEvidenceAt, 'scanId' | 'cpe' | 'fingerprint'> {
  /** When a scan read what the service is; newer scans may have seen only that the port is open. */
  identifiedAtMs: number | null;
  tunnel: string | null;
}

/** Of a site, by server, address and port. */
export async function listOpenPorts(db: Queryable, siteId: number, limit: number): Promise<OpenPort[]> {
  const { rows } = await sql<OpenPort>`
    with ports as (
      select distinct on (o.cluster_id, o.vm_id, o.address, o.transport, o.port) o.*,
        min(o.first_observed_at) over port as first_at,
        max(o.observed_at) filter (where o.profile = 'common') over port as common_at,
        max(o.observed_at) filter (where o.profile = 'full') over port as full_at
      from scan_observations o
      where o.site_id = ${siteId} and o.closed_at is null and o.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
      window port as (partition by o.cluster_id, o.vm_id, o.address, o.transport, o.port)
      order by o.cluster_id, o.vm_id, o.address, o.transport, o.port, o.observed_at desc)
    select p.cluster_id, p.vm_id as server_id, host(p.address) as address, p.transport, p.port,
      ${ms('p.first_at')} as first_observed_at_ms, ${ms('p.observed_at')} as observed_at_ms,
      ${ms('p.common_at')} as common_at_ms, ${ms('p.full_at')} as full_at_ms, ${ms('i.identified_at')} as identified_at_ms,
      ${knownColumns(['service', 'product', 'version', 'confidence', 'tunnel'])}
    from (select * from ports order by cluster_id, vm_id, address, transport, port limit ${limit}) p ${joinIdentification}
    order by p.cluster_id, p.vm_id, p.address, p.transport, p.port`.execute(db);
  return rows;
}

/** What an open port of an address said of itself when a scan asked it last. */
export type ServiceOfPort = Pick<
  OpenPort,
  'transport' | 'port' | 'product' | 'version' | 'extraInfo' | 'method' | 'confidence'
> & { cpe: string[] };

/** Of the server that has the address: the one that was seen there last. */
export async function listServicesAt(db: Queryable, address: string): Promise<ServiceOfPort[]> {
  const { rows } = await sql<ServiceOfPort>`
    with seen as (
      select o.* from scan_observations o
      where o.address = ${address}::inet and o.closed_at is null and o.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval),
    last as (select cluster_id, vm_id from seen order by observed_at desc limit 1)
    select p.transport, p.port, ${knownColumns(['product', 'version', 'confidence', 'cpe'])}
    from (select distinct on (o.transport, o.port) o.* from seen o join last using (cluster_id, vm_id)
      order by o.transport, o.port, o.observed_at desc) p ${joinIdentification}
      order by p.transport, p.port`.execute(db);
  return rows;
}

/** Whether a sensor keeps up with its scans. Sensors that never asked for a scan plan are missing. */
export interface OverdueScans {
  sensorId: number;
  /** Since it fetched its plan. */
  fetchedAgeSeconds: number;
  /** Addresses that its plan names. */
  targets: number;
  /** Of these, those named for two hours without a result of a common scan in that time. */
  overdue: number;
}

/** A target that is named is noted at least once an hour. */
const targetsOf = sql`
  select count(*)::int as targets, count(*) filter (where t.first_named_at < svc_now() - interval '2 hours' and not exists (
    select 1 from scan_attempts n where n.cluster_id = t.cluster_id and n.vm_id = t.vm_id and n.address = t.address
      and n.reported_at > svc_now() - interval '2 hours' and n.profile = 'common' and n.result_at is not null))::int as overdue
  from scan_targets t where t.sensor_id = p.sensor_id and t.named_at > svc_now() - interval '70 minutes'`;

/** Of all sensors; alerts ask every few seconds. */
export async function listOverdue(db: Queryable): Promise<OverdueScans[]> {
  const { rows } = await sql<OverdueScans>`
    select p.sensor_id, extract(epoch from svc_now() - p.fetched_at)::float8 as fetched_age_seconds, t.targets,
      t.overdue
    from scan_plans p cross join lateral (${targetsOf}) t order by p.sensor_id`.execute(db);
  return rows;
}

/** How the scans of a sensor go. */
export interface SensorScans extends OverdueScans {
  running: number;
  lastCommonAtMs: number | null;
  lastFullAtMs: number | null;
}

export async function listSensorScans(db: Queryable, siteId: number): Promise<SensorScans[]> {
  const { rows } = await sql<SensorScans>`
    select p.sensor_id, extract(epoch from svc_now() - p.fetched_at)::float8 as fetched_age_seconds, t.targets,
      t.overdue, a.running, ${ms('a.common_at')} as last_common_at_ms, ${ms('a.full_at')} as last_full_at_ms
    from scan_plans p
    cross join lateral (${targetsOf}) t
    cross join lateral (
      select count(*) filter (where a.result_at is null and a.reported_at > svc_now() - interval '1 minute')::int as running,
        max(a.finished_at) filter (where a.profile = 'common') as common_at,
        max(a.finished_at) filter (where a.profile = 'full') as full_at
      from scan_attempts a where a.sensor_id = p.sensor_id) a
    where p.site_id = ${siteId} order by p.sensor_id`.execute(db);
  return rows;
}
