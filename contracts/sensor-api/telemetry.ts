/**
 * What an upload says, as plain data: the same shape on both sides of the wire, described in format.md.
 *
 * A sensor's minute reports fit `TelemetryMinute` as they are. Counters are whole numbers that a double holds exactly.
 */

import type { Message } from '@bufbuild/protobuf';
import type { GuardReason } from '../guard-reasons.ts';
import type { GapReason } from '../minute-reasons.ts';
import type { DetectorEpoch, DetectorMinute, IncidentObservation } from './detection.ts';
import type {
  CaptureRole,
  HostInterface as HostInterfaceMessage,
  InterfaceTotals,
  NameEvidence,
  Neighbour,
  UsageDirection,
  ProbeFailure as WireFailure,
} from './telemetry_pb.js';
import type { NameOf } from './telemetry-values.ts';

/** Version of this contract (NET-9.1). */
export const telemetryContractVersion = 1;
/** Usage rows one capture may report for one minute (NET-8.6). */
export const usageRowsMax = 4096;
/** Capture minutes of one upload; a sensor sends one minute of each of its captures. */
export const captureMinutesMax = 64;
/** Local addresses of one capture minute. */
export const hostsMax = 65_536;
/** Gap records of one upload. */
export const gapsMax = 4096;
/** Interfaces and neighbours of one inventory, addresses of one interface. */
export const interfacesMax = 1024;
export const neighboursMax = 4096;
export const interfaceAddressesMax = 64;
/** Results of one upload: 32 probes over an hour without a minute committed. */
export const probeResultsMax = 2048;
/** Rows of spoofed traffic of one capture minute. */
export const spoofedRowsMax = 64;
/** Characters of a capture's name. */
export const captureNameMax = 64;

export interface TelemetryUpload {
  /** UUID of the spool file. */
  spoolId: string;
  /** From 1, one higher for each upload of this spool, never used twice. */
  sequence: number;
  sensorVersion: string;
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  /** The host's interfaces and neighbours; older sensors send none. */
  inventory?: HostInventory;
  /** What probes measured; older sensors send none. */
  probes?: ProbeResult[];
  /** What the detector sees of incidents; older sensors send none. */
  incidents?: IncidentObservation[];
  /** What the detector protected; older sensors send none. */
  epochs?: DetectorEpoch[];
}

/** What one capture saw in one UTC minute. */
export interface TelemetryMinute {
  /** Start of the UTC minute, seconds since 1970. */
  minute: number;
  /** The interface's name. */
  capture: string;
  role: TelemetryRole;
  /** At most 60,000; less means that the minute is partial, and a gap record names it as well. */
  observedMs: number;
  totals: TelemetryTotals;
  /** Exact counters of local addresses; no address twice. Remote ones are left out by the encoder. */
  hosts: TelemetryHost[];
  /** Rows of one key may occur twice; they add. */
  usage: TelemetryUsageRow[];
  /** Missing from older sensors, and where nothing is protected. */
  detector?: DetectorMinute;
  /** What MACs sent from addresses of others: in the totals, on no address. Missing where there is none. */
  spoofed?: SpoofedTraffic[];
}

/** What a MAC claimed that is not its own. Both texts are blank in the row of all that found no row of its own. */
export interface SpoofedTraffic {
  /** `segment|MAC` of the sender. */
  deviceKey: string;
  /** The address, in canonical text; blank where it is no server's. */
  address: string;
  /** What is spoofed; missing: the source address. Others are counted by the kernel alone, and may be on the sender's own address. */
  reason?: GuardReason;
  /** IP total lengths. */
  bytes: number;
  packets: number;
}

type WireTotals = Omit<InterfaceTotals, keyof Message>;
/** Counters that every sensor sends. Later ones are absent where they are zero or their sensor has none. */
type FirstTotal =
  | 'packets'
  | 'ipPackets'
  | 'ipBytes'
  | 'nonIpPackets'
  | 'parserDropped'
  | 'kernelDropped'
  | 'detailTruncated';
type Counters<Wire> = { [Name in keyof Wire]: number };

/** What an interface counted: the fields of `InterfaceTotals` in telemetry.proto. */
export type TelemetryTotals = Counters<Pick<WireTotals, FirstTotal>> &
  Partial<Counters<Omit<WireTotals, FirstTotal>>>;

/** The part of an address's counters that the sensor's own port scans caused. */
export interface OwnScanCounters {
  /** IP total lengths. */
  rxBytes: number;
  txBytes: number;
  packets: number;
}

/** What the filter at an uplink dropped of an address: it is in no counter of that uplink, and was not delivered. */
export interface DroppedCounters {
  /** IP total lengths, to and from the address. */
  rxBytes: number;
  txBytes: number;
  rxPackets: number;
  txPackets: number;
}

export interface TelemetryHost {
  /** Canonical text (RFC 5952). */
  address: string;
  /** Always true after decoding. */
  isLocal: boolean;
  rxBytes: number;
  txBytes: number;
  packets: number;
  /** Absent where there is none, and from older sensors. */
  ownScan?: OwnScanCounters;
  /** Absent where there is none, and from older sensors. */
  dropped?: DroppedCounters;
  /** `segment|MAC`, or blank (NET-2.2.9). */
  deviceKey: string;
}

export type TelemetryRole = NameOf<typeof CaptureRole>;
export type TelemetryDirection = NameOf<typeof UsageDirection>;
export type TelemetryEvidence = NameOf<typeof NameEvidence>;
/** Why an attempt of a probe was lost. */
export type ProbeFailure = NameOf<typeof WireFailure>;

/** One client, server, service and name. */
export interface TelemetryUsageRow {
  client: string;
  server: string;
  /** IP protocol number. */
  protocol: number;
  /** Null where the protocol has none. */
  serverPort: number | null;
  direction: TelemetryDirection;
  name: string;
  evidence: TelemetryEvidence;
  clientBytes: number;
  serverBytes: number;
  packets: number;
  /** Unix milliseconds at which each side last sent within the minute, 0 for never. */
  clientLastSentMs: number;
  serverLastSentMs: number;
}

/** Minutes that were not, or not wholly, collected, or were refused. Never an estimate of what was in them. */
export interface TelemetryGap {
  /** First and last minute, seconds since 1970, both inclusive. */
  fromMinute: number;
  toMinute: number;
  /** Blank: every capture of the sensor. */
  capture: string;
  reason: GapReason;
}

/** What the host's network consists of. */
export interface HostInventory {
  observedAtMs: number;
  interfaces: HostInterface[];
  neighbours: HostNeighbour[];
  /** What found no room. */
  interfacesLeftOut: number;
  neighboursLeftOut: number;
}

/** As telemetry.proto says. */
export type HostInterface = Omit<HostInterfaceMessage, keyof Message>;
/** A MAC that the host's kernel knows on a segment, as telemetry.proto says. */
export type HostNeighbour = Omit<Neighbour, keyof Message>;

/** What one probe measured in one UTC minute, or in a part of it after a restart. */
export interface ProbeResult {
  /** The id in the plan. */
  probe: number;
  /** Start of the UTC minute, seconds since 1970. */
  minute: number;
  /** Milliseconds after the minute's start at which the first attempt began; tells the parts of a minute apart. */
  firstSentMs: number;
  /** Attempts that began in the minute. */
  sent: number;
  lost: number;
  /** Round trips of those that were answered, whole microseconds; null where none was. */
  rtt: { minUs: number; medianUs: number; maxUs: number } | null;
  /** Why the last of the lost ones was; null where nothing was lost. */
  failure: ProbeFailure | null;
}
