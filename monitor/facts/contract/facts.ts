/**
 * What goes into a fact store and what comes out of it. Minutes are the second at which they start, since 1970; ranges
 * include their first minute and exclude their last; counters are whole numbers that a double holds exactly.
 */
import { keptMs } from '#contracts/retention.ts';
import type {
  DroppedCounters,
  OwnScanCounters,
  TelemetryEvidence,
  TelemetryGap,
  TelemetryMinute,
} from '#contracts/sensor-api/telemetry.ts';

/** An upload's origin. */
export interface FactOrigin {
  siteId: number;
  sensorId: number;
}

/** A gap as sensors tell it, or `rejected`: the upload with these minutes could not be applied. */
export type GapInput = Omit<TelemetryGap, 'reason'> & { reason: TelemetryGap['reason'] | 'rejected' };

/** With the sensor of its origin: what names an upload for good. */
export interface UploadToken {
  spoolId: string;
  sequence: number;
}

/** What one upload adds. */
export interface FactUpload {
  origin: FactOrigin;
  token: UploadToken;
  minutes: readonly TelemetryMinute[];
  gaps: readonly GapInput[];
}

export interface SiteRange {
  siteId: number;
  fromMinute: number;
  toMinute: number;
}

export interface AddressRange extends SiteRange {
  /** Canonical text. */
  address: string;
  /**
   * Of an address that is not unique: the segment; blank where no owner was seen. Absent: wherever it was seen, and of
   * several segments the strongest.
   */
  segment?: string;
}

export type Vantage = 'uplink' | 'bridge';
export type Direction = 'outbound' | 'inbound' | 'internal' | 'transit';

/** What the strongest capture saw of an address; minutes without a packet of it have none. */
export interface Sighting extends Listening {
  /** Bytes that were delivered to the address, and from it; IP total lengths. */
  rxBytes: number;
  txBytes: number;
  /** Both directions together; null where offload merged packets that can't be counted. */
  packets: number | null;
  /** The part of these counters that the sensor's own port scans caused; absent where there is none. */
  ownScan?: OwnScanCounters;
  /** What filters at uplinks dropped, beside these counters; absent where there is none. */
  dropped?: FilteredTraffic;
  /** NET-2.4.3; null: the parser lost packets, or no single capture holds both directional maxima. */
  coverage: number | null;
}

/**
 * What the filters of a site's uplinks dropped of an address in a minute. A capture counts before or behind a filter: a bridge counts what
 * the uplink of its host drops on the way out, and a capture of another host what is dropped on the way in. Of the capture that speaks for
 * the address that part is taken off, so its counters are always what was delivered.
 */
export interface FilteredTraffic extends DroppedCounters {
  /** The part that the capture had counted, both directions together. */
  countedBytes: number;
  countedPackets: number;
}

/** The same of a row of an engine; nothing where nothing was dropped. */
export const droppedOf = (dropped: FilteredTraffic): Pick<Sighting, 'dropped'> =>
  dropped.rxPackets + dropped.txPackets > 0 ? { dropped } : {};

/** The part of a row's counters that own scans are; nothing where there is none. */
export const ownScanOf = (rxBytes: number, txBytes: number, packets: number): Pick<Sighting, 'ownScan'> =>
  packets > 0 ? { ownScan: { rxBytes, txBytes, packets } } : {};

/** That a capture listened in a minute at all. */
export interface Listening {
  captureId: number;
  minute: number;
  observedMs: number;
  /** As for an address of which this capture saw nothing. */
  coverage: number | null;
}

/** A known gap of one capture; both ends inclusive. */
export interface CaptureGap {
  captureId: number;
  fromMinute: number;
  toMinute: number;
  reason: GapInput['reason'];
}

/** All that is known of an address in a range. */
export interface AddressFacts {
  sightings: Sighting[];
  /** Every capture that saw the address, by minute. */
  seen: { minute: number; captureId: number }[];
  /** The captures that saw it in its last minute before the range, at most a day earlier. */
  knownCaptures: number[];
  /** When these captures listened and may say that the address was silent, and their gaps. */
  listening: Listening[];
  gaps: CaptureGap[];
}

/** One capture's row of an address and minute, and what became of it. */
export interface CaptureRow {
  minute: number;
  captureId: number;
  sensorId: number;
  capture: string;
  role: Vantage;
  rxBytes: number;
  txBytes: number;
  packets: number;
  deviceKey: string;
  observedMs: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
  mergedFrames: number;
  /** True for the one that counts. */
  isChosen: boolean;
  /** A server of another node had the address: the row is kept and never counts. */
  isForeign: boolean;
  /** Why it was chosen: the only one, most bytes, or of equally strong ones the one that listened longest or stands first. */
  reason: 'only' | 'most_bytes' | 'longest' | 'uplink' | 'first' | null;
}

/** A minute of an address. */
export interface AddressMinute {
  /** Canonical text. */
  address: string;
  minute: number;
}

/** A capture that told of an address in a minute, and may. */
export interface Speaker extends AddressMinute {
  captureId: number;
}

/** What a sensor told in a range of an address that a server of another node had. */
export interface ForeignAddress {
  sensorId: number;
  address: string;
  minutes: number;
  rxBytes: number;
  txBytes: number;
  lastMinute: number;
}

/** What one capture lost in a range. */
export interface CaptureLosses {
  captureId: number;
  sensorId: number;
  siteId: number;
  name: string;
  /** Minutes of the range that were collected. */
  minutes: number;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
}

/** Whether a capture was collected of late, and until when it is known to have failed. */
export interface CaptureOutage {
  captureId: number;
  sensorId: number;
  siteId: number;
  name: string;
  role: Vantage;
  /** The newest minute of the time asked for that was collected; null: none was. */
  newestMinute: number | null;
  /** The newest minute that a gap of reason `capture_failed` names; null: none does. */
  failedThrough: number | null;
}

/** A capture of a site, with its newest minute and what it collected and lost of late. */
export interface CaptureFacts {
  captureId: number;
  sensorId: number;
  name: string;
  role: Vantage;
  newestMinute: number | null;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
  observedMs: number;
}

export interface SiteStep {
  timeMs: number;
  rxBytes: number;
  txBytes: number;
  packets: number;
  /** Most addresses of one minute. */
  addresses: number;
  /** Observed minutes. */
  minutes: number;
}

export interface TopAddress {
  address: string;
  /** Blank for a unique address, and where no owner was seen. */
  segment: string;
  rxBytes: number;
  txBytes: number;
  packets: number;
  lastSeenMinute: number;
}

export interface GapFact {
  sensorId: number;
  /** Blank: every capture of the sensor. */
  capture: string;
  fromMinute: number;
  toMinute: number;
  reason: GapInput['reason'];
}

/** What all captures of a site collected and lost in a range (NET-2.2.6). */
export interface Collection {
  captureMinutes: number;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
}

/** What an exact local address used over the Internet in one minute. */
export interface AddressApplication extends ApplicationKey {
  minute: number;
  /** `outbound`: the address is the client; `inbound`: it hosts the service. */
  direction: 'outbound' | 'inbound';
  /** The strongest that named it in this minute. */
  evidence: TelemetryEvidence;
  /** False where only the remote address is known, which must never leave the monitor. */
  isAttributed: boolean;
  /** To and from the address. */
  inboundBytes: number;
  outboundBytes: number;
  /** Unix milliseconds at which the address last sent; null: it did not. */
  lastSentMs: number | null;
}

/** What a local address exchanged under one name in a range; bytes are null where only the name is known. */
export interface AddressUse extends Omit<AddressApplication, 'minute' | 'inboundBytes' | 'outboundBytes'> {
  inboundBytes: number | null;
  outboundBytes: number | null;
}

export interface ViewRange extends SiteRange {
  /** Null: all. */
  direction: Direction | null;
}

/** What tells one application row from another. */
export interface ApplicationKey {
  name: string;
  /** IP protocol number. */
  protocol: number;
  serverPort: number | null;
}

export interface ApplicationRow extends ApplicationKey {
  evidence: TelemetryEvidence;
  isAttributed: boolean;
  /** To and from local endpoints; null for a name that only a capture without a say saw (NET-2.2.5). */
  inboundBytes: number | null;
  outboundBytes: number | null;
  vantage: Vantage;
  /** Local addresses that used it. */
  addresses: number;
  lastSentMs: number | null;
  /** The pair with the most bytes of the last 24 hours, and how many there are; null where none is kept. */
  topConnection: { client: string; server: string; pairs: number } | null;
}

/** Keys that are told apart by text. */
export const keyText = (key: ApplicationKey): string => `${key.protocol} ${key.serverPort} ${key.name}`;

/** A list of applications. */
export interface Ranking extends ViewRange {
  limit: number;
  /** Only names with this in them, in any case; sums are of all names, the total of these. */
  nameContains?: string;
  /** Top connections that are known already, by `keyText`. */
  topConnections?: ReadonlyMap<string, ApplicationRow['topConnection']>;
}

export interface ApplicationUse {
  rows: ApplicationRow[];
  /** Rows before the limit. */
  total: number;
  /** Bytes of all of them; of those named by evidence from the wire; of those named by their port alone. */
  bytes: number;
  domainBytes: number;
  portBytes: number;
}

/** Who used one application: lists are cut, counts are of everything (NET-2.2.2). */
export interface ApplicationDetail {
  /** Servers, those with the most bytes first; bytes are null where only names are known. */
  destinations: { address: string; bytes: number | null }[];
  destinationCount: number;
  /** Local devices; without a known owner the address stands alone, with a null key. */
  devices: { deviceKey: string | null; address: string | null; bytes: number | null }[];
  deviceCount: number;
  /** From client to server. */
  pairs: { client: string; server: string; bytes: number | null }[];
  pairCount: number;
  /** True: no pair is kept, so devices come from the applications' facts (fallback attribution). */
  isFallback: boolean;
}

/** What named an exact pair in one minute (NET-2.2.7): kept for 24 hours. */
export interface PairClassification extends ApplicationKey {
  minute: number;
  direction: Direction;
  client: string;
  server: string;
  evidence: TelemetryEvidence;
  /** Captures that reported it. */
  captures: number;
  /** Of the strongest of them. */
  clientBytes: number;
  serverBytes: number;
  packets: number;
}

/** Bytes of a device, of which every minute counts at one capture. */
export interface DeviceBytes {
  rxBytes: number;
  txBytes: number;
}

export interface DeviceTotals {
  deviceKey: string;
  /** Null: no owned counters arrived, so it is unknown (NET-2.2.9). */
  wan: DeviceBytes | null;
  lan: DeviceBytes | null;
}

export interface DeviceStep {
  timeMs: number;
  wan: DeviceBytes | null;
  lan: DeviceBytes | null;
}

/** Totals of devices; `sourceLimited` says that a budget cut what was read, so that they are at least so much (NET-2.2.10). */
export interface Limited<T> {
  items: T[];
  sourceLimited: boolean;
}

/** Bounds of one read of devices. */
export const deviceBudget = { keys: 2_000, addresses: 4_096, rows: 400_000 } as const;

/** Exact endpoint pairs live this long (NET-2.2.7). */
export const pairsKeptMs = keptMs('pairs');

/** Says of each minute's rows, the chosen one first, why that one counts. */
export function explainRows(rows: readonly Omit<CaptureRow, 'reason'>[]): CaptureRow[] {
  const byMinute = Map.groupBy(rows, (row) => row.minute);
  return rows.map((row) => ({
    ...row,
    reason: row.isChosen ? reasonOf(row, byMinute.get(row.minute)!) : null,
  }));
}

function reasonOf(
  chosen: Omit<CaptureRow, 'reason'>,
  told: readonly Omit<CaptureRow, 'reason'>[],
): CaptureRow['reason'] {
  const all = told.filter((row) => !row.isForeign);
  if (all.length === 1) return 'only';
  const bytes = (row: Omit<CaptureRow, 'reason'>) => row.rxBytes + row.txBytes;
  const strong = all.filter((row) => bytes(row) === bytes(chosen));
  if (strong.length === 1) return 'most_bytes';
  const long = strong.filter((row) => row.observedMs === chosen.observedMs);
  if (long.length === 1) return 'longest';
  const atUplink = long.filter((row) => row.role === chosen.role);
  return atUplink.length === 1 && chosen.role === 'uplink' ? 'uplink' : 'first';
}
