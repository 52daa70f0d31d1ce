/**
 * Port scans: what each sensor may scan, what became of it, and which ports of servers are open.
 *
 * Guarantees: a plan names only running servers of the sensor's own node that the inventory listed just now (NET-2.7.8). A
 * report counts once, for the server that the plan named. Common and full scans are kept apart: neither refreshes, closes
 * nor replaces what the other observed (NET-2.7.10).
 */

import { bind } from '#common/bind/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { type ScanReport, scanTargetsMax } from '#contracts/sensor-api/port-scans.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import type { PlanSection } from '#monitor/sensors/index.ts';
import { lockSite, type Sites } from '#monitor/sites/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { listEvidence } from './observation-store.ts';
import { countEntries, readSchedule, writeSchedule } from './plan-store.ts';
import { countExcluded, readPlan } from './read-plan.ts';
import * as reads from './read-store.ts';
import { receiveReport } from './receive-report.ts';
import * as requests from './request-store.ts';
import { parseSchedule, type ScanSchedule } from './schedule.ts';

export type { Exclusion } from './choose-targets.ts';
export type { ServiceEvidenceAt } from './observation-store.ts';
export type { OpenPort, OverdueScans, ScanAttempt, SensorScans } from './read-store.ts';
export type { DeliverableScan, PendingUpdate, ScanBody } from './request-store.ts';
export type { ScanSchedule } from './schedule.ts';

/** What the port-scan feed exchanges with operations. */
export type ScanExchange = Pick<
  Scans,
  'noteListing' | 'listPendingUpdates' | 'noteAnswers' | 'listDeliverable' | 'readBodies' | 'noteDelivered'
>;

export type Scans = ReturnType<typeof createScans>;

export function createScans(deps: ScansDeps) {
  return {
    /** Counts targets that find no room in scan plans, for the sensors' pages and alerts. */
    section: createScanSection(deps.db),
    /** Stores a report of a sensor. Throws `scans.unknown_target`, `scans.malformed`. */
    receive: (sensor: { id: number }, report: ScanReport) => receiveReport(deps, sensor.id, report),
    /** Notes a complete listing of requests under this revision of the connection, which confirms them (NET-2.7.9). */
    noteListing: requests.noteListing,
    noteAnswers: requests.noteAnswers,
    readBodies: requests.readBodies,
    noteDelivered: requests.noteDelivered,
    ...bind(deps.db, {
      listPendingUpdates: requests.listPendingUpdates,
      listDeliverable: requests.listDeliverable,
      listAttempts: reads.listAttempts,
      listOpenPorts: reads.listOpenPorts,
      listServicesAt: reads.listServicesAt,
      listSensorScans: reads.listSensorScans,
      listOverdue: reads.listOverdue,
      ...{ listEvidence, readSchedule },
    }),
    ...bind(() => deps, { readPlan, countExcluded, setSchedule }),
  };
}

/** What port scans need from the rest of the program. */
export interface ScansDeps {
  db: () => Queryable;
  /** Connections that only read, for plans (NET-5.3). */
  reader: () => Queryable;
  sites: Pick<Sites, 'find'>;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
  /** A result was stored: called in its transaction, after what it found. */
  onResult?: (trx: Queryable, server: ScannedServer) => Promise<void>;
}

/** The server that a result is about. */
export interface ScannedServer {
  siteId: number;
  clusterId: number;
  serverId: number;
}

/** How long what a scan observed counts as fresh, from the observation itself (NET-2.7.10). */
const commonFreshMs = 2 * 3_600_000;
const fullFreshMs = 27 * 3_600_000;

/** `stale`: neither a common scan of the last two hours nor a full scan of the last 27 saw the port. */
export function freshnessOf(
  port: { commonAtMs: number | null; fullAtMs: number | null },
  nowMs: number,
): 'fresh' | 'stale' {
  const isWithin = (ms: number | null, keptMs: number) => ms !== null && nowMs - ms <= keptMs;
  return isWithin(port.commonAtMs, commonFreshMs) || isWithin(port.fullAtMs, fullFreshMs) ? 'fresh' : 'stale';
}

/** Where each phase of a scan begins and ends in percent of the whole: discovery takes by far the most time. */
const spans: Readonly<Record<string, readonly [from: number, to: number]>> = {
  tcp_discovery: [0, 40],
  udp_discovery: [40, 90],
  tcp_identification: [90, 97],
  udp_identification: [97, 100],
};

/** How far a scan is, in percent; null before its first heartbeat. */
export function progressOf(phase: string | null, percent: number | null): number | null {
  const span = phase === null ? undefined : spans[phase];
  if (!span || percent === null) return null;
  return span[0] + ((span[1] - span[0]) * percent) / 100;
}

/** Sets when the daily full scans of a site begin; sensors follow with their next plan. Throws `scans.invalid`, `scans.no_site`. */
async function setSchedule(
  { db, sites }: Pick<ScansDeps, 'db' | 'sites'>,
  actor: Actor,
  siteId: number,
  given: ScanSchedule,
): Promise<void> {
  requireOperator(actor);
  const { time, zone } = parseSchedule(given);
  const site = await sites.find(siteId);
  await inTransaction(db(), async (trx) => {
    if (!site || !(await lockSite(trx, siteId)))
      throw new CodedError('scans.no_site', 'This site does not exist.');
    const before = await readSchedule(trx, siteId);
    await writeSchedule(trx, siteId, { time, zone }, actor.name ?? actor.kind);
    await record(trx, actor, {
      operation: 'site.set_full_scan_time',
      subject: { kind: 'site', id: siteId, name: site.name },
      before: { time: before.time, zone: before.zone },
      after: { time, zone },
    });
  });
}

/**
 * The scan targets of a sensor as a section of what it is asked for: they travel in a plan of their own, so the section
 * carries nothing, and counts what found no room (NET-8.5).
 */
const label = 'port scan targets';
const advice = 'Move servers to other nodes: the addresses that are left out are not scanned.';

function createScanSection(db: () => Queryable): PlanSection {
  return {
    name: 'port_scans',
    read: async () => ({}),
    async count(subjects) {
      const counted = await countEntries(db());
      return new Map(
        subjects.map(({ sensorId }) => {
          const entries = counted.get(sensorId) ?? 0;
          return [sensorId, { section: 'port_scans', label, entries, entriesMax: scanTargetsMax, advice }];
        }),
      );
    },
  };
}

// Which open ports belong to observed applications: those that the address hosted on the same transport and port
// (NET-2.7.12). The others are services that only scans know; they never become applications.

/** What an address hosted. */
export interface HostedApplication {
  address: string;
  name: string;
  /** IP protocol number. */
  protocol: number;
  serverPort: number | null;
}

const protocolOf: Readonly<Record<ScanTransport, number>> = { tcp: 6, udp: 17 };

/** The names of the applications of each port, in the order of the ports; none for a service that only scans know. */
export function matchApplications<Port extends { address: string; transport: ScanTransport; port: number }>(
  ports: readonly Port[],
  hosted: readonly HostedApplication[],
): { port: Port; applications: string[] }[] {
  const names = new Map<string, Set<string>>();
  for (const { address, protocol, serverPort, name } of hosted) {
    const key = `${address} ${protocol} ${serverPort}`;
    names.set(key, (names.get(key) ?? new Set()).add(name));
  }
  return ports.map((port) => ({
    port,
    applications: [...(names.get(`${port.address} ${protocolOf[port.transport]} ${port.port}`) ?? [])],
  }));
}
