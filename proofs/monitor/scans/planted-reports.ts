/** Faults that the proof `scan-reports` must detect: the monitor gets or keeps something else than the model takes in. */
import type pg from 'pg';
import type { ScanReport } from '#contracts/sensor-api/port-scans.ts';
import { scanId } from '#monitor/scans/testing/scan-world.ts';
import type { ReportModel } from './report-model.ts';

interface Context {
  targets: readonly string[];
  model: ReportModel;
}

type Tamper = (report: ScanReport, context: Context) => ScanReport;

/** As if the monitor read a report in another way. */
const tampering = {
  partial_closes: (report) => (report.kind === 'result' ? { ...report, state: 'complete' } : report),
  profiles_mixed: (report) => (report.kind === 'result' ? { ...report, profile: 'common' } : report),
  second_result: (report, { model }) =>
    report.kind === 'result' && model.scans.get(report.scan_id)?.result && report.scan_request_id === null
      ? { ...report, scan_id: scanId() }
      : report,
  foreign_target: (report, { targets }) =>
    targets.includes(report.target_id) ? report : { ...report, target_id: targets[0]! },
  unfinished_closes: (report) =>
    report.kind === 'result' && report.phases.some(({ finished }) => !finished)
      ? {
          ...{ ...report, started_at: new Date().toISOString() },
          phases: report.phases.map((phase) => ({ ...phase, finished: true })),
        }
      : report,
  times_moved: (report) =>
    report.kind === 'result'
      ? { ...report, services: report.services.map((one) => ({ ...one, first_observed_at: report.at })) }
      : report,
  text_lost: (report) =>
    report.kind === 'result'
      ? { ...report, services: report.services.map((one) => ({ ...one, product: null })) }
      : report,
  heartbeat_first: (report) =>
    report.kind === 'heartbeat' ? { ...report, at: new Date().toISOString() } : report,
} satisfies Record<string, Tamper>;

/** As if the monitor kept something else. */
const changes = {
  refused_stored: `insert into scan_attempts (sensor_id, scan_id, site_id, cluster_id, vm_id, interface_id, address, state)
    select sensor_id, gen_random_uuid(), site_id, cluster_id, vm_id, interface_id, address, 'running'
    from scan_targets where sensor_id = $2 and $1::bigint > 0 limit 1`,
  honest_changed: `update scan_observations set product = 'other' where sensor_id = $1 and $2::bigint > 0`,
  honest_lost: `delete from scan_attempts where sensor_id = $1 and $2::bigint > 0`,
};

type Tampering = keyof typeof tampering;
type Change = keyof typeof changes;
export type Plant = Tampering | Change | 'unreadable_taken';
export const plants = [...Object.keys(tampering), ...Object.keys(changes), 'unreadable_taken'] as Plant[];

/** Whether the fault is put into the tables when all reports have come, so that few will do. */
export const isOfTables = (plant: Plant): boolean => plant in changes;

export function tamper(plant: Plant, report: ScanReport, context: Context): ScanReport {
  return plant in tampering ? tampering[plant as Tampering](report, context) : report;
}

export async function changeStored(
  pool: Pick<pg.Pool, 'query'>,
  plant: Plant,
  sensors: { honest: number; hostile: number },
): Promise<void> {
  if (plant in changes) await pool.query(changes[plant as Change], [sensors.honest, sensors.hostile]);
}
