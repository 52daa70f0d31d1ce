/** Schedules of sites, the plans that sensors fetched, the targets that these named, and the scans that were reported. */
import { sql } from 'kysely';
import type { ScanService } from '#contracts/port-scan/index.ts';
import type { ScanHeartbeat, ScanReport, ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { defaultSchedule, type ScanSchedule } from './schedule.ts';

export interface NewTarget {
  clusterId: number;
  serverId: number;
  interfaceId: number;
  address: string;
}

/** Gives these targets of a sensor their ids, in the order given; the same target keeps its id. */
export async function nameTargets(
  db: Queryable,
  sensor: { id: number; siteId: number },
  targets: readonly NewTarget[],
): Promise<number[]> {
  const { rows } = await sql<{ n: number; id: number }>`
    with given as (
      select n, cluster_id, vm_id, interface_id, address
      from unnest(${targets.map((one) => one.clusterId)}::bigint[], ${targets.map((one) => one.serverId)}::bigint[],
        ${targets.map((one) => one.interfaceId)}::bigint[], ${targets.map((one) => one.address)}::inet[])
        with ordinality as g(cluster_id, vm_id, interface_id, address, n)),
    named as (
      insert into scan_targets as held (sensor_id, site_id, cluster_id, vm_id, interface_id, address)
      select ${sensor.id}, ${sensor.siteId}, cluster_id, vm_id, interface_id, address from given
      order by cluster_id, vm_id, interface_id, address
      on conflict (sensor_id, cluster_id, vm_id, interface_id, address)
        do update set named_at = svc_now(), site_id = excluded.site_id,
          first_named_at = case when held.named_at < svc_now() - interval '70 minutes' then svc_now() else held.first_named_at end
      returning id, cluster_id, vm_id, interface_id, address)
    select given.n::int as n, named.id from given join named using (cluster_id, vm_id, interface_id, address)
    order by given.n`.execute(db);
  return rows.map(({ id }) => id);
}

/** Targets that a plan names for this long without a change are noted again: retention goes by that time. */
export async function touchTargets(db: Queryable, sensorId: number, ids: readonly number[]): Promise<void> {
  await sql`
    update scan_targets set named_at = svc_now(),
      first_named_at = case when named_at < svc_now() - interval '70 minutes' then svc_now() else first_named_at end
    where sensor_id = ${sensorId} and id = any(${[...ids]}::bigint[])
      and named_at < svc_now() - interval '1 hour'`.execute(db);
}

export interface StoredPlan {
  revision: number;
  fingerprint: string;
  fetchedAgeSeconds: number;
}

/** Null before a sensor's first fetch. */
export async function readPlanState(db: Queryable, sensorId: number): Promise<StoredPlan | null> {
  const { rows } = await sql<StoredPlan>`
    select revision, fingerprint, extract(epoch from svc_now() - fetched_at)::float8 as fetched_age_seconds
    from scan_plans where sensor_id = ${sensorId}`.execute(db);
  return rows[0] ?? null;
}

/**
 * Notes that a sensor got a plan with this content; its revision grows when the content is another one. `addresses` is the number of
 * those that it would name without its bound.
 */
export async function notePlan(
  db: Queryable,
  sensor: { id: number; siteId: number },
  plan: { fingerprint: string; addresses: number },
): Promise<number> {
  const { rows } = await sql<{ revision: number }>`
    insert into scan_plans as held (sensor_id, site_id, fingerprint, entries)
    values (${sensor.id}, ${sensor.siteId}, ${plan.fingerprint}, ${plan.addresses})
    on conflict (sensor_id) do update set fetched_at = svc_now(), site_id = excluded.site_id, entries = excluded.entries,
      revision = held.revision + case when held.fingerprint = excluded.fingerprint then 0 else 1 end,
      changed_at = case when held.fingerprint = excluded.fingerprint then held.changed_at else svc_now() end,
      fingerprint = excluded.fingerprint
    returning revision`.execute(db);
  return rows[0]!.revision;
}

/** Of all sensors, the addresses that their plans would name without the bound; none for one that stopped to fetch its plan. */
export async function countEntries(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await sql<{ sensorId: number; entries: number }>`
    select sensor_id, entries from scan_plans
    where fetched_at > svc_now() - interval '10 minutes' order by sensor_id`.execute(db);
  return new Map(rows.map(({ sensorId, entries }) => [sensorId, entries]));
}

/** The schedule of a site, and who set it. */
export interface SiteSchedule extends ScanSchedule {
  /** Null: the default was never changed. */
  changedBy: string | null;
}

export async function readSchedule(db: Queryable, siteId: number): Promise<SiteSchedule> {
  const { rows } = await sql<SiteSchedule>`
    select at_time as time, time_zone as zone, changed_by
    from scan_schedules where site_id = ${siteId}`.execute(db);
  return rows[0] ?? { ...defaultSchedule, changedBy: null };
}

export async function writeSchedule(
  trx: Queryable,
  siteId: number,
  { time, zone }: ScanSchedule,
  changedBy: string,
): Promise<void> {
  await sql`
    insert into scan_schedules (site_id, at_time, time_zone, changed_by) values (${siteId}, ${time}, ${zone}, ${changedBy})
    on conflict (site_id) do update set at_time = excluded.at_time, time_zone = excluded.time_zone,
      changed_at = svc_now(), changed_by = excluded.changed_by`.execute(trx);
}

/** A target as the plan named it. */
export interface NamedTarget extends NewTarget {
  siteId: number;
}

/** The target of a sensor with this id; null when no plan of this sensor named it. */
export async function findTarget(db: Queryable, sensorId: number, id: number): Promise<NamedTarget | null> {
  const { rows } = await sql<NamedTarget>`
    select site_id, cluster_id, vm_id as server_id, interface_id,
      host(address) as address from scan_targets where sensor_id = ${sensorId} and id = ${id}`.execute(db);
  return rows[0] ?? null;
}

/** What was reported of a scan before. */
export interface ReportedScan {
  clusterId: number;
  serverId: number;
  address: string;
  startedAtMs: number | null;
  heartbeatAtMs: number | null;
  hasResult: boolean;
}

/** The row of a scan, made where there is none, and locked until the end of the transaction. */
export async function lockAttempt(
  trx: Queryable,
  sensorId: number,
  scan: { scanId: string; requestId: string | null },
  target: NamedTarget,
): Promise<ReportedScan> {
  await sql`
    insert into scan_attempts (sensor_id, scan_id, site_id, cluster_id, vm_id, interface_id, address, request_id, state)
    values (${sensorId}, ${scan.scanId}::uuid, ${target.siteId}, ${target.clusterId}, ${target.serverId},
      ${target.interfaceId}, ${target.address}::inet, ${scan.requestId}::uuid, 'running')
    on conflict (sensor_id, scan_id) do nothing`.execute(trx);
  const { rows } = await sql<ReportedScan>`
    select cluster_id, vm_id as server_id, host(address) as address,
      (extract(epoch from started_at) * 1000)::float8 as started_at_ms,
      (extract(epoch from heartbeat_at) * 1000)::float8 as heartbeat_at_ms, result_at is not null as has_result
    from scan_attempts where sensor_id = ${sensorId}
      and scan_id = ${scan.scanId}::uuid for update`.execute(trx);
  return rows[0]!;
}

/** A report, whose own time is given apart. */
type Reported<Report extends ScanReport> = Omit<Report, 'at'>;

const isOf = (sensorId: number, scanId: string) => sql`sensor_id = ${sensorId} and scan_id = ${scanId}::uuid`;
/** A clock that is ahead reported what is known now. */
const atOrNow = (text: string) => sql`least(${text}::timestamptz, svc_now())`;

export async function writeStarted(
  trx: Queryable,
  sensorId: number,
  report: Reported<ScanStarted>,
  reportedAt: string,
): Promise<void> {
  await sql`
    update scan_attempts set started_at = ${atOrNow(reportedAt)}, profile = coalesce(profile, ${report.profile}),
      pool = ${report.pool}, reported_at = svc_now()
    where ${isOf(sensorId, report.scan_id)}`.execute(trx);
}

export async function writeHeartbeat(
  trx: Queryable,
  sensorId: number,
  report: Reported<ScanHeartbeat>,
  reportedAt: string,
): Promise<void> {
  const found = report.found === undefined ? null : JSON.stringify(report.found);
  await sql`
    update scan_attempts set heartbeat_at = ${atOrNow(reportedAt)}, phase = ${report.phase}, percent = ${report.percent},
      paused_for = ${report.paused_for}, packets_per_second = ${report.packets_per_second ?? null}::float8,
      found = coalesce(${found}::jsonb, found), reported_at = svc_now()
    where ${isOf(sensorId, report.scan_id)}`.execute(trx);
}

export async function writeResult(
  trx: Queryable,
  sensorId: number,
  report: Reported<ScanResult>,
  reportedAt: string,
  services: readonly ScanService[],
): Promise<void> {
  await sql`
    update scan_attempts set state = ${report.state}, profile = ${report.profile},
      started_at = ${atOrNow(report.started_at)}, 
      finished_at = greatest(${atOrNow(report.started_at)}, ${atOrNow(report.finished_at)}),
      result_at = ${atOrNow(reportedAt)}, phase = null, percent = null, paused_for = null,
      packets = ${report.packets ?? null}::bigint, pauses = ${JSON.stringify(report.pauses ?? [])}::jsonb,
      phases = ${JSON.stringify(report.phases)}::jsonb, notes = ${[...new Set(report.notes)]}::text[],
      services = ${JSON.stringify(services)}::jsonb, reported_at = svc_now()
    where ${isOf(sensorId, report.scan_id)}`.execute(trx);
}
