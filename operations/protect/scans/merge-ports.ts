/**
 * What is known of the ports of an address, and how a scan changes it (NET-2.7.10).
 *
 * Evidence of common scans and of full scans stand beside each other, as at the monitor: a scan replaces older evidence of its
 * own profile, and a complete one closes what its own profile found before it began and does not find any more. A partial scan
 * closes nothing. A port is open while one of the two says so. What a scan identified is evidence of its own: it stays with its
 * time until a newer scan identifies the service, or for seven days (NET-2.7.5). The order in which scans are delivered does not
 * matter to which ports are open, nor to what they are identified as.
 */

import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import { transports } from '#contracts/ip-protocols.ts';
import type { ScanProfile, ScanService, ScanTransport } from '#contracts/port-scan/index.ts';
import { isIdentified, portsAsked } from '#contracts/port-scan/index.ts';

/** What answered at a port; `method` `table` is a guess by the port's number. */
export type PortAnswer = Pick<
  ScanService,
  'service' | 'product' | 'version' | 'extra_info' | 'method' | 'confidence' | 'tunnel' | 'cpe'
>;

export interface Evidence {
  observedAt: Date;
  /** End of the complete scan of this profile that did not find the port any more. */
  closedAt: Date | null;
  scanId: string;
  answer: PortAnswer;
}

/** What a scan read of a service. */
export interface Identification {
  at: Date;
  scanId: string;
  answer: PortAnswer;
}

export interface PortRow {
  transport: ScanTransport;
  port: number;
  /** Begin of the present time of being open, or of the last one. */
  firstObservedAt: Date;
  /** Null while it is open by evidence of one profile. */
  closedAt: Date | null;
  common: Evidence | null;
  full: Evidence | null;
  /** The newest, of either profile. */
  identified: Identification | null;
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

const keyOf = ({ transport, port }: { transport: string; port: number }) => `${transport}/${port}`;

const evidenceOf = ({ common, full }: Pick<PortRow, 'common' | 'full'>) =>
  [common, full].filter((evidence) => evidence !== null);

export function newestOf(row: Pick<PortRow, 'common' | 'full'>): Date {
  return new Date(Math.max(...evidenceOf(row).map(({ observedAt }) => observedAt.getTime())));
}

/** When the last evidence ended; null while one says that the port is open. */
export function closedAtOf(row: Pick<PortRow, 'common' | 'full'>): Date | null {
  const ends = evidenceOf(row).map(({ closedAt }) => closedAt?.getTime() ?? null);
  return ends.includes(null) ? null : new Date(Math.max(...ends.filter((end) => end !== null)));
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
    const closed = found.has(keyOf(row)) ? row : close(row, scan);
    if (closed === row) continue;
    result.changed.push(closed);
    if (closed.closedAt !== null) result.closed.push(closed);
  }
  return result;
}

/** The row without what the scan did not find any more; the same row where it changes nothing. */
function close(row: PortRow, scan: DeliveredScan): PortRow {
  const own = row[scan.profile];
  if (own === null || own.closedAt !== null || !isWhole(scan, row.transport)) return row;
  if (own.observedAt >= new Date(scan.started_at)) return row;
  return withEvidence(row, scan.profile, { ...own, closedAt: new Date(scan.finished_at) });
}

/** The row after one more observation; the same row where it says nothing new. */
function observe(
  before: PortRow | null,
  coverage: Coverage,
  profile: ScanProfile,
  service: ScanService,
): PortRow {
  const after = observeOpen(before, coverage, profile, service);
  const held = after.identified;
  const at = new Date(service.observed_at);
  const isNewer = held === null || at > held.at || (+at === +held.at && service.scan_id > held.scanId);
  if (!isIdentified(service) || !isNewer) return after;
  return { ...after, identified: { at, scanId: service.scan_id, answer: answerOf(service) } };
}

function observeOpen(
  before: PortRow | null,
  coverage: Coverage,
  profile: ScanProfile,
  service: ScanService,
): PortRow {
  const { transport, port, scan_id: scanId } = service;
  const at = new Date(service.observed_at);
  const first = earlier(new Date(service.first_observed_at), at);
  // A later complete scan of the profile, delivered earlier, did not find it.
  const start = coverage[profile][transport];
  const closedAt = start !== null && start > at ? start : null;
  const evidence: Evidence = { observedAt: at, closedAt, scanId, answer: answerOf(service) };
  if (before === null) {
    const none = { common: null, full: null, identified: null };
    const row = { transport, port, firstObservedAt: first, closedAt, ...none };
    return withEvidence(row, profile, evidence);
  }
  const own = before[profile];
  if (own !== null && own.closedAt !== null && closedAt !== null) return before;
  const isNewer = own === null || at > own.observedAt;
  const row = isNewer ? withEvidence(before, profile, evidence) : before;
  const firstObservedAt = firstOf(before, row, first, at);
  if (!isNewer && firstObservedAt.getTime() === before.firstObservedAt.getTime()) return before;
  return { ...row, firstObservedAt };
}

/** When the present time of being open began, after an observation of this time that began so. */
function firstOf(before: PortRow, row: PortRow, first: Date, at: Date): Date {
  if (before.closedAt === null) return earlier(before.firstObservedAt, first);
  if (row.closedAt !== null) return before.firstObservedAt;
  return first > before.closedAt ? first : at;
}

function withEvidence(row: PortRow, profile: ScanProfile, evidence: Evidence): PortRow {
  const changed = { ...row, [profile]: evidence };
  return { ...changed, closedAt: closedAtOf(changed) };
}

export function answerOf(service: ScanService): PortAnswer {
  const { product, version, extra_info, method, confidence, tunnel, cpe } = service;
  return { service: service.service, product, version, extra_info, method, confidence, tunnel, cpe };
}

const earlier = (a: Date, b: Date) => (a < b ? a : b);

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

function widen(coverage: Coverage, scan: DeliveredScan): Coverage {
  const start = new Date(scan.started_at);
  const own = { ...coverage[scan.profile] };
  for (const transport of transports) {
    const before = own[transport];
    if (isWhole(scan, transport) && (before === null || start > before)) own[transport] = start;
  }
  return { ...coverage, [scan.profile]: own };
}
