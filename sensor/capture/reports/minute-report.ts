/**
 * The report of one capture for one UTC minute: the only output of the packet path.
 *
 * Plain data, so that structured clone can pass it from the capture's worker thread to the spool. Addresses are
 * canonical text (RFC 5952), made once at export. Bytes are IP total lengths, never frame lengths.
 */

import type { CaptureTotals } from '../capture.ts';

/** Position of a capture: the WAN uplink, a LAN bridge, or a capture file of unknown position. */
export type CaptureRole = 'uplink' | 'bridge' | 'file';

/** `outbound`: the client is local; `inbound`: the server is local; `internal`: both are; `transit`: neither is. */
export type UsageDirection = 'outbound' | 'inbound' | 'internal' | 'transit';

/** Evidence for a name, strongest first (NET-2.2.3, NET-2.2.4). */
export type NameEvidence =
  | 'ip_protocol'
  | 'tls_sni'
  | 'http_host'
  | 'http_connect'
  | 'tls_outer'
  | 'dns'
  | 'none';

export interface MinuteReport {
  /** Start of the UTC minute, seconds since 1970. */
  minute: number;
  /** The interface's name. */
  capture: string;
  role: CaptureRole;
  /** How long this capture listened in the minute, milliseconds, at most 60,000. */
  observedMs: number;
  totals: CaptureTotals;
  /**
   * Exact counters of addresses. Local addresses are complete, even when other tables overflow. At most 4,096 remote
   * ones.
   */
  hosts: HostCounters[];
  /** MACs of routers (bridges), `52:54:00:00:00:01`; they own no address (NET-2.2.9). */
  routerMacs: string[];
  /** The 4,096 largest rows at most (NET-8.6). Packets without a row are in `totals.detailTruncated`. */
  usage: UsageRow[];
  /** What MACs sent from addresses of others; at most 64 rows. It is in the totals, and not on these addresses. */
  spoofed: SpoofedRow[];
}

/** Both texts are blank in the row of what found no other one. */
export interface SpoofedRow {
  /** `segment|MAC` of the sender. */
  deviceKey: string;
  /** The source address, whose owners have other MACs. */
  address: string;
  bytes: number;
  packets: number;
}

export interface HostCounters extends WindowHost {
  isLocal: boolean;
  /** The part of these counters that the sensor's own scans of the address caused; absent where there is none. */
  ownScan?: { rxBytes: number; txBytes: number; packets: number };
  /** `segment|MAC` of the local owner in this minute; blank when unknown or contradictory (NET-2.2.9). */
  deviceKey: string;
  /** Two MACs sent from it in this minute, so it has no owner. */
  isContested: boolean;
}

/** What one capture saw in one window of ten seconds (NET-2.5): differences, by the frames' own time. */
export interface WindowReport {
  /** Unix milliseconds, a multiple of the window. */
  startedAtMs: number;
  observedMs: number;
  totals: CaptureTotals;
  /** Local addresses with traffic in this window. */
  hosts: WindowHost[];
  /** The largest applications, most bytes first; empty unless requested. */
  applications: WindowApplication[];
  /** Addresses that others sent from in this minute up to the window's end. */
  spoofed: string[];
}

export interface WindowHost {
  address: string;
  /** Bytes to and from the address. */
  rxBytes: number;
  txBytes: number;
  /** Both directions together; directional packets are never estimated (NET-2.4.2). */
  packets: number;
}

export interface WindowApplication {
  /** Registrable domain, protocol label, or the remote address (NET-2.2.3). */
  name: string;
  /** IP protocol number: 6 TCP, 17 UDP, … */
  protocol: number;
  /** Server port, or null where the protocol has none. */
  serverPort: number | null;
  clientBytes: number;
  serverBytes: number;
}

/** One client, server, service and name in one minute. */
export interface UsageRow extends WindowApplication {
  client: string;
  server: string;
  direction: UsageDirection;
  evidence: NameEvidence;
  packets: number;
  /**
   * Unix milliseconds at which the client and the server last sent; 0 when they did not send in this minute. Resets,
   * openings, their bare answers, and ICMP errors do not count as sending (NET-2.4.4).
   */
  clientLastSentMs: number;
  serverLastSentMs: number;
}
