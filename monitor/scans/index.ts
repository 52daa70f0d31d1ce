/**
 * Port scans: what each sensor may scan, what became of it, and which ports of servers are open.
 *
 * Guarantees: a plan names only running servers of the sensor's own node that the inventory listed just now (NET-2.7.8). A
 * report counts once, for the server that the plan named. Common and full scans are kept apart: neither refreshes, closes
 * nor replaces what the other observed (NET-2.7.10).
 */

import type { ScanRequest } from '#contracts/admin-api/port-scans.ts';
import type { ScanReport } from '#contracts/sensor-api/port-scans.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { ClusterMapping } from '#monitor/sites/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ScansDeps } from './deps.ts';
import { listEvidence } from './observation-store.ts';
import { readSchedule } from './plan-store.ts';
import { countExcluded, readPlan } from './read-plan.ts';
import * as reads from './read-store.ts';
import { receiveReport } from './receive-report.ts';
import * as requests from './request-store.ts';
import { createScanSection } from './scan-section.ts';
import type { ScanSchedule } from './schedule.ts';
import { setSchedule } from './set-schedule.ts';

export type { Exclusion } from './choose-targets.ts';
export type { ScannedServer } from './deps.ts';
export { freshnessOf } from './freshness.ts';
export { type HostedApplication, matchApplications } from './match-applications.ts';
export type { ServiceEvidenceAt } from './observation-store.ts';
export { progressOf } from './progress.ts';
export type { OpenPort, OverdueScans, ScanAttempt, SensorScans } from './read-store.ts';
export type { DeliverableScan, PendingUpdate, ScanBody } from './request-store.ts';
export type { ScanSchedule } from './schedule.ts';

/** What the port-scan feed exchanges with operations. */
export interface ScanExchange {
  /** Notes a complete listing of requests under this revision of the connection, which confirms them (NET-2.7.9). */
  noteListing(trx: Queryable, listed: readonly ScanRequest[], connectionRevision: number): Promise<void>;
  /** Requests that operations has to be told about, the oldest first. */
  listPendingUpdates(
    clusters: readonly ClusterMapping[],
    connectionRevision: number,
    limit: number,
  ): Promise<requests.PendingUpdate[]>;
  noteAnswers(trx: Queryable, answers: readonly requests.AnsweredUpdate[]): Promise<void>;
  /** Results of these clusters that operations does not have yet. */
  listDeliverable(
    clusterIds: readonly number[],
    connectionRevision: number,
  ): Promise<requests.DeliverableScan[]>;
  readBodies(db: Queryable, results: readonly requests.ReportedResult[]): Promise<requests.ScanBody[]>;
  noteDelivered(trx: Queryable, delivered: readonly { scanId: string; outcome: string }[]): Promise<void>;
}

export type Scans = ReturnType<typeof createScans>;

export function createScans(deps: ScansDeps) {
  return {
    /** Counts targets that find no room in scan plans, for the sensors' pages and alerts. */
    section: createScanSection(deps.db),
    /** What a sensor should scan, made for this fetch. */
    readPlan: (sensor: { id: number; siteId: number }) => readPlan(deps, sensor),
    /** Stores a report of a sensor. Throws `scans.unknown_target`, `scans.malformed`. */
    receive: (sensor: { id: number }, report: ScanReport) => receiveReport(deps, sensor.id, report),
    /** Notes a complete listing of requests under this revision of the connection, which confirms them (NET-2.7.9). */
    noteListing: requests.noteListing,
    /** Requests that operations has to be told about, the oldest first. */
    listPendingUpdates: (clusters: readonly ClusterMapping[], connectionRevision: number, limit: number) =>
      requests.listPendingUpdates(deps.db(), clusters, connectionRevision, limit),
    noteAnswers: requests.noteAnswers,
    /** Results of these clusters that operations does not have yet. */
    listDeliverable: (clusterIds: readonly number[], revision: number) =>
      requests.listDeliverable(deps.db(), clusterIds, revision),
    readBodies: requests.readBodies,
    noteDelivered: requests.noteDelivered,
    /** A site's scans, those that run and the newest first. */
    listAttempts: (siteId: number, limit: number) => reads.listAttempts(deps.db(), siteId, limit),
    /** Open ports of a site's servers. */
    listOpenPorts: (siteId: number, limit: number) => reads.listOpenPorts(deps.db(), siteId, limit),
    /** What open ports of an address said of themselves. */
    listServicesAt: (address: string) => reads.listServicesAt(deps.db(), address),
    /** Open ports of these servers as evidence of software. */
    listEvidence: (servers: readonly { clusterId: number; vmId: number }[]) =>
      listEvidence(deps.db(), servers),
    /** How the scans of a site's sensors go; sensors that never asked for a plan are missing. */
    listSensorScans: (siteId: number) => reads.listSensorScans(deps.db(), siteId),
    /** Whether sensors of all sites keep up. */
    listOverdue: () => reads.listOverdue(deps.db()),
    /** Addresses of a sensor's node that are not scanned, by the reason. */
    countExcluded: (sensorId: number) => countExcluded(deps, sensorId),
    /** When the daily full scans of a site begin. */
    readSchedule: (siteId: number) => readSchedule(deps.db(), siteId),
    /** Throws `scans.invalid` with what to correct, `scans.no_site`. */
    setSchedule: (actor: Actor, siteId: number, schedule: ScanSchedule) =>
      setSchedule(deps, actor, siteId, schedule),
  };
}
