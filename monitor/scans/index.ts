/**
 * Port scans: what each sensor may scan, what became of it, and which ports of servers are open.
 *
 * Guarantees: a plan names only running servers of the sensor's own node that the inventory listed just now (NET-2.7.8). A
 * report counts once, for the server that the plan named. Common and full scans are kept apart: neither refreshes, closes
 * nor replaces what the other observed (NET-2.7.10).
 */
import type { ScanPlan, ScanReceipt, ScanReport } from '#contracts/sensor-api/port-scans.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { ScansDeps } from './deps.ts';
import { readPlan } from './read-plan.ts';
import { receiveReport } from './receive-report.ts';
import type { ScanSchedule } from './schedule.ts';
import { readSchedule, type SiteSchedule } from './schedule-store.ts';
import { setSchedule } from './set-schedule.ts';

export { keptScans } from './kept.ts';
export type { ScanSchedule } from './schedule.ts';

export interface Scans {
  /** What a sensor should scan, made for this fetch. */
  readPlan(sensor: { id: number; siteId: number }): Promise<ScanPlan>;
  /** Stores a report of a sensor. Throws `scans.unknown_target`, `scans.malformed`. */
  receive(sensor: { id: number }, report: ScanReport): Promise<ScanReceipt>;
  /** When the daily full scans of a site begin. */
  readSchedule(siteId: number): Promise<SiteSchedule>;
  /** Throws `scans.invalid` with what to correct, `scans.no_site`. */
  setSchedule(actor: Actor, siteId: number, schedule: ScanSchedule): Promise<void>;
}

export function createScans(deps: ScansDeps): Scans {
  return {
    readPlan: (sensor) => readPlan(deps, sensor),
    receive: (sensor, report) => receiveReport(deps, sensor.id, report),
    readSchedule: (siteId) => readSchedule(deps.db(), siteId),
    setSchedule: (actor, siteId, schedule) => setSchedule(deps, actor, siteId, schedule),
  };
}
