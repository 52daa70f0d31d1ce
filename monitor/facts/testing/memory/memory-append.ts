/** Uploads as they came, and the rows that they add up to. */
import type {
  DroppedCounters,
  OwnScanCounters,
  TelemetryMinute,
  TelemetryTotals,
  TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry.ts';
import { zeroTotals } from '#contracts/sensor-api/telemetry-totals.ts';
import { wholeMinutes, withoutObserved } from '#contracts/sensor-api/unobserved-gaps.ts';
import { vantageCode } from '../../contract/codes.ts';
import { localAddressOf, type NameApplication } from '../../contract/collect-facts.ts';
import type * as facts from '../../contract/facts.ts';
import { segmentsOf } from '../../contract/segments.ts';

export interface CaptureRowOfMinute {
  siteId: number;
  captureId: number;
  sensorId: number;
  name: string;
  minute: number;
  vantage: number;
  observedMs: number;
  totals: Required<TelemetryTotals>;
}

export interface HostRow {
  address: string;
  minute: number;
  capture: CaptureRowOfMinute;
  rxBytes: number;
  txBytes: number;
  packets: number;
  deviceKey: string;
  /** Those that its contributions name. */
  segments: Set<string>;
  /** Its own contributions disagreed, or one of them did not know. */
  isDisputed: boolean;
  lanRxBytes: number;
  lanTxBytes: number;
  ownScan: OwnScanCounters;
  dropped: DroppedCounters;
}

export interface UsageFact extends TelemetryUsageRow {
  minute: number;
  capture: CaptureRowOfMinute;
  vantage: number;
  isAttributed: boolean;
  /** As the capture's minute has it. */
  ownSegment: string;
  local: string | null;
  inboundBytes: number;
  outboundBytes: number;
  lastSentMs: number;
}

export interface KnownCapture {
  captureId: number;
  siteId: number;
  sensorId: number;
  name: string;
  role: facts.Vantage;
}

/** All that the engine keeps. */
export interface MemoryState {
  known: Map<string, KnownCapture>;
  captures: Map<string, CaptureRowOfMinute>;
  hosts: Map<string, HostRow>;
  usage: UsageFact[];
  gaps: (facts.GapFact & { siteId: number })[];
  tokens: Set<string>;
}

export function createMemoryState(): MemoryState {
  return { known: new Map(), captures: new Map(), hosts: new Map(), usage: [], gaps: [], tokens: new Set() };
}

/** Adds uploads whose tokens are new, and removes minutes that they observed whole from gaps, their own too. */
export function appendUploads(
  state: MemoryState,
  uploads: readonly facts.FactUpload[],
  nameApplication: NameApplication,
): void {
  for (const { origin, minutes, gaps } of trimGaps(state, takeNew(state, uploads))) {
    for (const minute of minutes) {
      const capture = addCapture(state, origin, minute);
      addHosts(state, capture, minute);
      addUsage(state, capture, minute, nameApplication);
    }
    for (const gap of gaps) state.gaps.push({ ...origin, ...gap });
  }
}

function addCapture(
  { known, captures }: MemoryState,
  origin: facts.FactOrigin,
  minute: TelemetryMinute,
): CaptureRowOfMinute {
  const { capture: name, role } = minute;
  const id = `${origin.sensorId} ${name}`;
  const capture = known.get(id) ?? { ...origin, name, role, captureId: known.size + 1 };
  known.set(id, { ...capture, role });
  const key = `${id} ${minute.minute}`;
  let row = captures.get(key);
  if (!row) {
    const totals = zeroTotals();
    const { captureId } = capture;
    row = { ...origin, captureId, name, minute: minute.minute, vantage: 2, observedMs: 0, totals };
    captures.set(key, row);
  }
  row.vantage = Math.min(row.vantage, vantageCode(role));
  row.observedMs = Math.min(row.observedMs + minute.observedMs, 60_000);
  for (const name of Object.keys(row.totals) as (keyof typeof row.totals)[])
    row.totals[name] += minute.totals[name] ?? 0;
  return row;
}

function addHosts({ hosts }: MemoryState, capture: CaptureRowOfMinute, minute: TelemetryMinute): void {
  const segmentOf = segmentsOf(minute);
  const internal = minute.usage.filter((row) => row.direction === 'internal');
  for (const host of minute.hosts.filter((one) => one.isLocal)) {
    const { address, deviceKey } = host;
    const sum = (as: 'client' | 'server', read: 'clientBytes' | 'serverBytes') =>
      internal.filter((row) => row[as] === address).reduce((total, row) => total + row[read], 0);
    const key = `${capture.captureId} ${minute.minute} ${address}`;
    let row = hosts.get(key);
    if (!row) {
      const known = { deviceKey, isDisputed: false, segments: new Set<string>() };
      row = {
        address,
        minute: minute.minute,
        capture,
        ...known,
        ...noBytes,
        ownScan: { ...noScan },
        dropped: { ...noDrops },
      };
      hosts.set(key, row);
    }
    if (row.isDisputed || row.deviceKey !== deviceKey) {
      row.isDisputed = true;
      row.deviceKey = '';
    }
    if (segmentOf(address) !== '') row.segments.add(segmentOf(address));
    row.rxBytes += host.rxBytes;
    row.txBytes += host.txBytes;
    row.packets += host.packets;
    row.ownScan.rxBytes += host.ownScan?.rxBytes ?? 0;
    row.ownScan.txBytes += host.ownScan?.txBytes ?? 0;
    row.ownScan.packets += host.ownScan?.packets ?? 0;
    for (const name of Object.keys(noDrops) as (keyof DroppedCounters)[])
      row.dropped[name] += host.dropped?.[name] ?? 0;
    row.lanRxBytes += sum('client', 'serverBytes') + sum('server', 'clientBytes');
    row.lanTxBytes += sum('client', 'clientBytes') + sum('server', 'serverBytes');
  }
}

function addUsage(
  { usage }: MemoryState,
  capture: CaptureRowOfMinute,
  minute: TelemetryMinute,
  nameApplication: NameApplication,
): void {
  const segmentOf = segmentsOf(minute);
  for (const row of minute.usage) {
    const isHost = row.direction === 'inbound';
    usage.push({
      ...row,
      ...nameApplication(row),
      minute: minute.minute,
      capture,
      vantage: vantageCode(minute.role),
      ownSegment: segmentOf(localAddressOf(row)),
      local: localAddressOf(row),
      inboundBytes: isHost ? row.clientBytes : row.serverBytes,
      outboundBytes: isHost ? row.serverBytes : row.clientBytes,
      lastSentMs: isHost ? row.serverLastSentMs : row.clientLastSentMs,
    });
  }
}

function takeNew({ tokens }: MemoryState, uploads: readonly facts.FactUpload[]): facts.FactUpload[] {
  return uploads.filter(({ origin, token }) => {
    const key = `${origin.sensorId} ${token.spoolId} ${token.sequence}`;
    if (tokens.has(key)) return false;
    tokens.add(key);
    return true;
  });
}

function trimGaps(state: MemoryState, uploads: readonly facts.FactUpload[]): facts.FactUpload[] {
  const trimmed: facts.FactUpload[] = [];
  const { known, captures } = state;
  const seen = new Set(captures.keys());
  const names = new Set(known.values().map(({ sensorId, name }) => `${sensorId} ${name}`));
  for (const { origin, minutes } of uploads)
    for (const { capture } of minutes) names.add(`${origin.sensorId} ${capture}`);
  for (const upload of uploads) {
    const prefix = `${upload.origin.sensorId} `;
    const keyOf = ({ capture, minute }: { capture: string; minute: number }) =>
      `${prefix}${capture} ${minute}`;
    const observed = wholeMinutes(upload).filter((one) => !seen.has(keyOf(one)));
    const ofSensor = [...names]
      .filter((one) => one.startsWith(prefix))
      .map((one) => one.slice(prefix.length));
    state.gaps = state.gaps.flatMap((gap) =>
      gap.sensorId === upload.origin.sensorId ? withoutObserved(gap, observed, ofSensor) : [gap],
    );
    for (const [i, one] of trimmed.entries())
      if (one.origin.sensorId === upload.origin.sensorId)
        trimmed[i] = {
          ...one,
          gaps: one.gaps.flatMap((gap) => withoutObserved(gap, observed, ofSensor)),
        };
    trimmed.push(upload);
    for (const minute of upload.minutes) seen.add(keyOf(minute));
  }
  return trimmed;
}

const noScan: OwnScanCounters = { rxBytes: 0, txBytes: 0, packets: 0 };
const noDrops: DroppedCounters = { rxBytes: 0, txBytes: 0, rxPackets: 0, txPackets: 0 };
const noBytes = { rxBytes: 0, txBytes: 0, packets: 0, lanRxBytes: 0, lanTxBytes: 0 };
