/**
 * What is known of the ports of an address, and how a scan changes it (NET-2.7.10).
 *
 * Evidence of common scans and of full scans stand beside each other; a scan replaces only older evidence of its own profile.
 * A port is open until a complete scan that asked for it, and began after it was last seen open, did not find it. A partial scan
 * closes nothing. The order in which scans are delivered does not matter to which ports are open.
 */

import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import type { ScanProfile, ScanService, ScanTransport } from '#contracts/port-scan/index.ts';
import { portsAsked } from '#contracts/port-scan/index.ts';
import { isCommonPort } from './common-ports.ts';

/** What answered at a port; `method` `table` is a guess by the port's number. */
export type PortAnswer = Pick<
  ScanService,
  'service' | 'product' | 'version' | 'extra_info' | 'method' | 'confidence' | 'tunnel' | 'cpe'
>;

export interface Evidence {
  observedAt: Date;
  scanId: string;
  answer: PortAnswer;
}

export interface PortRow {
  transport: ScanTransport;
  port: number;
  /** Begin of the present time of being open, or of the last one. */
  firstObservedAt: Date;
  /** Null while it is open. */
  closedAt: Date | null;
  common: Evidence | null;
  full: Evidence | null;
}

/** Start of the newest complete scan of each profile that asked all its ports of a transport. */
export type Coverage = Record<ScanProfile, Record<ScanTransport, Date | null>>;

export interface MergeResult {
  /** Rows that are new or different. */
  changed: PortRow[];
  opened: PortRow[];
  closed: PortRow[];
  coverage: Coverage;
}

const transports = ['tcp', 'udp'] as const;
const keyOf = ({ transport, port }: { transport: string; port: number }) => `${transport}/${port}`;

export function newestOf({ common, full }: Pick<PortRow, 'common' | 'full'>): Date {
  const times = [common, full].flatMap((evidence) => (evidence ? [evidence.observedAt.getTime()] : []));
  return new Date(Math.max(...times));
}

/** `held`: rows that have not expired. */
export function mergeScan(held: readonly PortRow[], coverage: Coverage, scan: DeliveredScan): MergeResult {
  const rows = new Map(held.map((row) => [keyOf(row), row]));
  const result: MergeResult = { changed: [], opened: [], closed: [], coverage: widen(coverage, scan) };
  const found = new Set<string>();
  for (const service of scan.services) {
    found.add(keyOf(service));
    const before = rows.get(keyOf(service)) ?? null;
    const after = observe(before, coverage, scan.profile, service);
    if (after === before) continue;
    result.changed.push(after);
    const wasOpen = before !== null && before.closedAt === null;
    if (after.closedAt === null && !wasOpen) result.opened.push(after);
  }
  for (const row of held) {
    if (row.closedAt !== null || found.has(keyOf(row)) || !wasAsked(scan, row)) continue;
    if (newestOf(row) >= new Date(scan.started_at)) continue;
    const closed = { ...row, closedAt: new Date(scan.finished_at) };
    result.changed.push(closed);
    result.closed.push(closed);
  }
  return result;
}

/** The row after one more observation; the same row where it says nothing new. */
function observe(
  before: PortRow | null,
  coverage: Coverage,
  profile: ScanProfile,
  service: ScanService,
): PortRow {
  const at = new Date(service.observed_at);
  const evidence: Evidence = { observedAt: at, scanId: service.scan_id, answer: answerOf(service) };
  const first = earlier(new Date(service.first_observed_at), at);
  const { transport, port } = service;
  if (before === null) {
    const row = { transport, port, firstObservedAt: first, closedAt: null, common: null, full: null };
    // A later complete scan, delivered earlier, did not find it.
    return { ...row, [profile]: evidence, closedAt: lastAskedAfter(coverage, service, at) };
  }
  if (before.closedAt !== null) {
    if (at <= before.closedAt) return before;
    const firstObservedAt = first > before.closedAt ? first : at;
    return { ...before, firstObservedAt, closedAt: null, common: null, full: null, [profile]: evidence };
  }
  const older = before[profile];
  const isNewer = older === null || at > older.observedAt;
  const firstObservedAt = earlier(before.firstObservedAt, first);
  if (!isNewer && firstObservedAt.getTime() === before.firstObservedAt.getTime()) return before;
  return { ...before, firstObservedAt, ...(isNewer && { [profile]: evidence }) };
}

export function answerOf(service: ScanService): PortAnswer {
  const { product, version, extra_info, method, confidence, tunnel, cpe } = service;
  return { service: service.service, product, version, extra_info, method, confidence, tunnel, cpe };
}

const earlier = (a: Date, b: Date) => (a < b ? a : b);

/** Start of the newest complete scan after this time that asked for the port; null where there is none. */
function lastAskedAfter(
  coverage: Coverage,
  { transport, port }: { transport: ScanTransport; port: number },
  at: Date,
): Date | null {
  const asked = [coverage.full[transport], isCommonPort(transport, port) ? coverage.common[transport] : null];
  const later = asked.flatMap((start) => (start !== null && start > at ? [start.getTime()] : []));
  return later.length === 0 ? null : new Date(Math.max(...later));
}

/** Whether the scan asked all ports of its profile, to the end. */
function isWhole(scan: DeliveredScan, transport: ScanTransport): boolean {
  return (
    scan.state === 'complete' &&
    scan.phases.some(
      (phase) =>
        phase.transport === transport && phase.finished && phase.ports_asked >= portsAsked[scan.profile],
    )
  );
}

/** A common scan asks for the most used ports, and so for those that an earlier common scan found. */
function wasAsked(scan: DeliveredScan, { transport, port, common }: PortRow): boolean {
  if (!isWhole(scan, transport)) return false;
  return scan.profile === 'full' || common !== null || isCommonPort(transport, port);
}

function widen(coverage: Coverage, scan: DeliveredScan): Coverage {
  const start = new Date(scan.started_at);
  const own = { ...coverage[scan.profile] };
  for (const transport of transports) {
    const before = own[transport];
    if (isWhole(scan, transport) && (before === null || start > before)) own[transport] = start;
  }
  return { ...coverage, [scan.profile]: own };
}
