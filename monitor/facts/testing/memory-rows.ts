/** Uploads as they came, and the rows that they add up to. */
import type { TelemetryMinute, TelemetryTotals, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { wholeMinutes, withoutObserved } from '#contracts/sensor-api/unobserved-gaps.ts';
import { isForeign, type Placement } from '#monitor/placements/index.ts';
import { vantageCode } from '../codes.ts';
import { localAddressOf, type NameApplication } from '../collect-facts.ts';
import type * as facts from '../facts.ts';
import { segmentsOf } from '../segments.ts';

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

interface KnownCapture {
  captureId: number;
  siteId: number;
  sensorId: number;
  name: string;
  role: facts.Vantage;
}

/** Where servers are, as the engine under test knows it. */
export interface PlacementBook {
  /** Rows about an address as they look from a sensor. */
  placementsOf(sensorId: number, address: string): (Placement & { isOpen: boolean })[];
  /** Up to when open rows are certain, unix seconds. */
  certainUntil(): number;
}

export interface MemoryRows {
  readonly book: PlacementBook;
  append(uploads: readonly facts.FactUpload[]): void;
  /** Removes minutes that were observed whole from gaps, those of the uploads too; returns the uploads with the rest. */
  trimGaps<U extends facts.FactUpload>(uploads: readonly U[]): U[];
  sites(): number[];
  knownCaptures(siteId: number): KnownCapture[];
  captures(siteId: number): CaptureRowOfMinute[];
  /** What counts. */
  hosts(siteId: number): HostRow[];
  /** What sensors told of other nodes' addresses. */
  foreignHosts(siteId: number): HostRow[];
  usage(siteId: number): UsageFact[];
  gaps(range: facts.SiteRange): facts.GapFact[];
  captureGaps(range: facts.SiteRange, captureIds: ReadonlySet<number>): facts.CaptureGap[];
  isYoung(minute: number): boolean;
}

export function createMemoryRows(
  nameApplication: NameApplication,
  nowSecond: () => number,
  book: PlacementBook,
): MemoryRows {
  const known = new Map<string, KnownCapture>();
  const captures = new Map<string, CaptureRowOfMinute>();
  const hosts = new Map<string, HostRow>();
  const usage: UsageFact[] = [];
  let gaps: (facts.GapFact & { siteId: number })[] = [];
  const isYoung = (minute: number) => minute >= nowSecond() - 86_400;

  const isOther = (capture: CaptureRowOfMinute, address: string | null) =>
    address !== null && isForeign(book.placementsOf(capture.sensorId, address), capture.minute);

  function captureRow(origin: facts.FactOrigin, minute: TelemetryMinute): CaptureRowOfMinute {
    const { capture: name, role } = minute;
    const id = `${origin.sensorId} ${name}`;
    const capture = known.get(id) ?? { ...origin, name, role, captureId: known.size + 1 };
    known.set(id, { ...capture, role });
    const key = `${id} ${minute.minute}`;
    let row = captures.get(key);
    if (!row) {
      const zero = {
        packets: 0,
        ipPackets: 0,
        ipBytes: 0,
        nonIpPackets: 0,
        parserDropped: 0,
        kernelDropped: 0,
      };
      const totals = { ...zero, detailTruncated: 0, mergedFrames: 0 };
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

  function addHosts(capture: CaptureRowOfMinute, minute: TelemetryMinute): void {
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
        row = { address, minute: minute.minute, capture, ...known, ...noBytes };
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
      row.lanRxBytes += sum('client', 'serverBytes') + sum('server', 'clientBytes');
      row.lanTxBytes += sum('client', 'clientBytes') + sum('server', 'serverBytes');
    }
  }

  return {
    book,
    append(uploads) {
      for (const { origin, minutes, gaps: told } of uploads) {
        for (const minute of minutes) {
          const capture = captureRow(origin, minute);
          addHosts(capture, minute);
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
        for (const gap of told) gaps.push({ ...origin, ...gap });
      }
    },
    trimGaps(uploads) {
      const trimmed: (typeof uploads)[number][] = [];
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
        gaps = gaps.flatMap((gap) =>
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
    },
    sites: () => [...new Set([...captures.values()].map((one) => one.siteId))],
    knownCaptures: (siteId) => [...known.values()].filter((one) => one.siteId === siteId),
    captures: (siteId) => [...captures.values()].filter((one) => one.siteId === siteId),
    hosts: (siteId) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && !isOther(capture, address),
      ),
    foreignHosts: (siteId) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && isOther(capture, address),
      ),
    usage: (siteId) =>
      usage.filter(({ capture, local }) => capture.siteId === siteId && !isOther(capture, local)),
    gaps: (range) =>
      gaps
        .filter((gap) => gap.siteId === range.siteId)
        .filter((gap) => gap.toMinute >= range.fromMinute && gap.fromMinute < range.toMinute)
        .map(({ siteId: _, ...gap }) => gap),
    captureGaps(range, captureIds) {
      return this.gaps(range)
        .flatMap(({ sensorId, capture, fromMinute, toMinute }) =>
          [...known.values()]
            .filter((one) => one.sensorId === sensorId && (capture === '' || capture === one.name))
            .filter((one) => captureIds.has(one.captureId))
            .map(({ captureId }) => ({ captureId, fromMinute, toMinute })),
        )
        .sort((a, b) => a.captureId - b.captureId || a.fromMinute - b.fromMinute || a.toMinute - b.toMinute);
    },
    isYoung,
  };
}

const noBytes = { rxBytes: 0, txBytes: 0, packets: 0, lanRxBytes: 0, lanTxBytes: 0 };
