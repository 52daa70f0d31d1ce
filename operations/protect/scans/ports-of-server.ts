/**
 * What a customer sees of the ports of a server: of the addresses that it has now, and for seven days (NET-2.7.10, NET-2.7.11).
 */
import {
  type PortState,
  type ScanKind,
  type ScanNote,
  type ScanPhase,
  type ScanProfile,
  type ScanState,
  type ScanTransport,
  scanProfiles,
} from '#contracts/port-scan/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { Subject } from '../subject.ts';
import { answerOf, newestOf, type PortAnswer, type PortRow } from './merge-ports.ts';
import * as ports from './port-store.ts';
import { listFetchedClusters, listRequests } from './request-store.ts';
import { isOverdue, isPending } from './scan-request.ts';

export interface ObservedPort {
  address: string;
  transport: ScanTransport;
  port: number;
  state: PortState;
  /** Begin of the present time of being open, or of the last one. */
  firstObservedAt: Date;
  /** Of the evidence that is shown. */
  observedAt: Date;
  closedAt: Date | null;
  profile: ScanProfile;
  freshness: 'fresh' | 'stale';
  answer: PortAnswer;
  /** When a scan read the answer; null: none did, and the answer is a guess. Newer scans may have seen only the open port. */
  identifiedAt: Date | null;
  /** Opened or closed after the newest complete full scan of the address; false before the first one. */
  isChanged: boolean;
}

/** A request, or a routine scan. */
export interface ServerScan {
  id: string;
  address: string;
  kind: ScanKind;
  profile: ScanProfile;
  state: ScanState;
  isOverdue: boolean;
  /** Null of routine scans. */
  requestedAt: Date | null;
  expiresAt: Date | null;
  startedAt: Date | null;
  heartbeatAt: Date | null;
  finishedAt: Date | null;
  /** Percent, while it runs. */
  progress: number | null;
  /** Null without a result. */
  result: { phases: ScanPhase[]; notes: ScanNote[]; portsOpen: number } | null;
}

export interface ServerPorts {
  open: ObservedPort[];
  closed: ObservedPort[];
  /** Newest first; pending ones before all others. */
  scans: ServerScan[];
  /** End of the oldest among the newest complete full scans of the addresses; null while one has none. */
  fullScanAt: Date | null;
  /** False while no monitor fetches requests of this server. */
  isFetched: boolean;
  nowMs: number;
}

const requestsMax = 200;
const routineMax = 50;
/** NET-2.7.10. */
const freshMs: Readonly<Record<ScanProfile, number>> = { common: 2 * 3_600_000, full: 27 * 3_600_000 };

/** An open port as one scan found it. */
export interface FoundService {
  transport: ScanTransport;
  port: number;
  firstObservedAt: Date;
  answer: PortAnswer;
}

/** What one requested scan found. */
export interface ScanResult {
  scan: ServerScan;
  services: FoundService[];
  nowMs: number;
}

/** True where the name of a service says only what its port number is used for. */
export const isGuess = ({ method }: PortAnswer): boolean => method === 'table';

/** The result of a request, as it was delivered; null where the server's present addresses have none of this id. */
export async function readResult(
  db: Queryable,
  addresses: Pick<Addresses, 'listAllocationsOf'>,
  subject: Subject,
  requestId: string,
): Promise<ScanResult | null> {
  const { scans, nowMs } = await readPorts(db, addresses, subject);
  const scan = scans.find(({ id, result }) => id === requestId && result !== null);
  if (!scan || scan.kind === 'routine') return null;
  const found = await ports.findServices(db, subject, requestId);
  return {
    scan,
    services: found.map((service) => ({
      transport: service.transport,
      port: service.port,
      firstObservedAt: new Date(service.first_observed_at),
      answer: answerOf(service),
    })),
    nowMs,
  };
}

export async function readPorts(
  db: Queryable,
  addresses: Pick<Addresses, 'listAllocationsOf'>,
  { serverId, tenantId }: Subject,
): Promise<ServerPorts> {
  const nowMs = await readNowMs(db);
  const all = await addresses.listAllocationsOf({ serverId, tenantId });
  const allocations = new Map(all.map((each) => [each.id, each]));
  const allocationIds = [...allocations.keys()];
  const of = { serverId, tenantId, allocationIds };
  const [rows, fullScans, requests, requested, routine, clusterIds] = await Promise.all([
    ports.listPorts(db, allocationIds),
    ports.listFullScans(db, of),
    listRequests(db, of, requestsMax),
    ports.listScans(db, of, { isRoutine: false, limit: requestsMax }),
    ports.listScans(db, of, { isRoutine: true, limit: routineMax }),
    listFetchedClusters(db),
  ]);
  const fullAt = new Map(fullScans.map((each) => [each.allocationId, each.finishedAt]));
  const observed = rows.map((row) =>
    show(row, allocations.get(row.allocationId)!.address, fullAt.get(row.allocationId) ?? null, nowMs),
  );
  const results = new Map(requested.map((scan) => [scan.requestId, scan]));
  const fullTimes = [...fullAt.values()].map((at) => at.getTime());
  return {
    open: observed.filter(({ state }) => state === 'open'),
    closed: observed.filter(({ state }) => state === 'closed'),
    scans: [
      ...requests.map((row) => ({
        ...row,
        profile: 'full' as const,
        isOverdue: isOverdue(row, nowMs),
        result: results.get(row.id) ?? null,
      })),
      ...routine.map(routineScan),
    ].sort(newestFirst),
    fullScanAt:
      allocations.size > 0 && fullAt.size === allocations.size ? new Date(Math.min(...fullTimes)) : null,
    isFetched: all.some(({ clusterId }) => clusterIds?.includes(clusterId) ?? true),
    nowMs,
  };
}

/** Of an open port evidence that says so; fresh before stale, then the newest. */
function show(row: PortRow, address: string, fullAt: Date | null, nowMs: number): ObservedPort {
  const evidence = scanProfiles.flatMap((profile) => {
    const found = row[profile];
    if (found === null || (row.closedAt === null && found.closedAt !== null)) return [];
    return { profile, ...found, isFresh: nowMs - found.observedAt.getTime() <= freshMs[profile] };
  });
  const order = (each: (typeof evidence)[number]) => Number(each.isFresh) * 1e15 + each.observedAt.getTime();
  const shown = evidence.toSorted((a, b) => order(b) - order(a))[0]!;
  const changedAt = row.closedAt ?? row.firstObservedAt;
  return {
    address,
    transport: row.transport,
    port: row.port,
    state: row.closedAt === null ? 'open' : 'closed',
    firstObservedAt: row.firstObservedAt,
    observedAt: row.closedAt === null ? shown.observedAt : newestOf(row),
    closedAt: row.closedAt,
    profile: shown.profile,
    freshness: shown.isFresh ? 'fresh' : 'stale',
    answer: (row.identified ?? shown).answer,
    identifiedAt: row.identified?.at ?? null,
    isChanged: fullAt !== null && changedAt > fullAt,
  };
}

function routineScan(scan: ports.ScanRow): ServerScan {
  return {
    ...{ id: scan.scanId, address: scan.address, kind: scan.kind, profile: scan.profile, state: scan.state },
    ...{ isOverdue: false, requestedAt: null, expiresAt: null, heartbeatAt: null, progress: null },
    ...{ startedAt: scan.startedAt, finishedAt: scan.finishedAt, result: scan },
  };
}

function newestFirst(a: ServerScan, b: ServerScan): number {
  const order = ({ state, requestedAt, startedAt }: ServerScan) =>
    (isPending(state) ? 1e15 : 0) + (requestedAt ?? startedAt)!.getTime();
  return order(b) - order(a);
}
