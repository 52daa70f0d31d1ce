/** Scans that sensors reported: the statements that write them. */
import { sql } from 'kysely';
import type { ScanService } from '#contracts/port-scan/index.ts';
import type { ScanHeartbeat, ScanReport, ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A target as the plan named it. */
export interface NamedTarget {
  siteId: number;
  clusterId: number;
  vmId: number;
  interfaceId: number;
  address: string;
}

/** The target of a sensor with this id; null when no plan of this sensor named it. */
export async function findTarget(db: Queryable, sensorId: number, id: number): Promise<NamedTarget | null> {
  const { rows } = await sql<NamedTarget>`
    select site_id as "siteId", cluster_id as "clusterId", vm_id as "vmId", interface_id as "interfaceId",
      host(address) as address from scan_targets where sensor_id = ${sensorId} and id = ${id}`.execute(db);
  return rows[0] ?? null;
}

/** What was reported of a scan before. */
export interface ReportedScan {
  clusterId: number;
  vmId: number;
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
    values (${sensorId}, ${scan.scanId}::uuid, ${target.siteId}, ${target.clusterId}, ${target.vmId},
      ${target.interfaceId}, ${target.address}::inet, ${scan.requestId}::uuid, 'running')
    on conflict (sensor_id, scan_id) do nothing`.execute(trx);
  const { rows } = await sql<ReportedScan>`
    select cluster_id as "clusterId", vm_id as "vmId", host(address) as address,
      (extract(epoch from started_at) * 1000)::float8 as "startedAtMs",
      (extract(epoch from heartbeat_at) * 1000)::float8 as "heartbeatAtMs", result_at is not null as "hasResult"
    from scan_attempts where sensor_id = ${sensorId} and scan_id = ${scan.scanId}::uuid for update`.execute(
    trx,
  );
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
