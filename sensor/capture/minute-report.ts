/**
 * What one capture saw in one UTC minute: the only thing that leaves the packet path.
 *
 * Plain data, so that it crosses from the capture's worker thread to the spool by structured clone.
 * Addresses are canonical text (RFC 5952), made once at export. Bytes are IP total lengths, never frame lengths.
 */

/** Where a capture listens: the WAN uplink, a LAN bridge, or a capture file of unknown place. */
export type CaptureRole = 'uplink' | 'bridge' | 'file';

/** `outbound`: the client is local; `inbound`: the server is local; `internal`: both are; `transit`: neither is. */
export type UsageDirection = 'outbound' | 'inbound' | 'internal' | 'transit';

/** What a name rests on, strongest first (NET-2.2.3, NET-2.2.4). */
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
  /** How much of the minute this capture listened, milliseconds, at most 60,000. */
  observedMs: number;
  totals: CaptureTotals;
  /** Exact counters of addresses; complete for local ones, whatever else overflows. At most 4,096 remote ones. */
  hosts: HostCounters[];
  /** MACs that forward for others (bridges), `52:54:00:00:00:01`; they own no address (NET-2.2.9). */
  routerMacs: string[];
  /** The 4,096 largest rows at most (NET-8.6). Packets that found no row are in `totals.detailTruncated`. */
  usage: UsageRow[];
}

export interface CaptureTotals {
  /** `ipPackets` + `nonIpPackets` + `parserDropped`, exactly. */
  packets: number;
  ipPackets: number;
  ipBytes: number;
  nonIpPackets: number;
  /** Delivered by the capture but malformed or cut (NET-2.2.6). */
  parserDropped: number;
  /** Dropped by the kernel before the parser saw them, where the source can tell. */
  kernelDropped: number;
  /** Packets whose detail found no room in a bounded table; they count everywhere else. */
  detailTruncated: number;
  /** Frames merged by offload out of an unknown number of packets; where there are any, `packets` is too low. */
  mergedFrames: number;
}

export interface HostCounters {
  address: string;
  isLocal: boolean;
  /** Bytes to and from the address. */
  rxBytes: number;
  txBytes: number;
  /** Both directions together; directional packets are never estimated (NET-2.4.2). */
  packets: number;
  /** `segment|MAC` of the local owner seen in this minute, blank when unknown or contradictory (NET-2.2.9). */
  deviceKey: string;
  /** Two MACs sent from it in this minute, so nobody owns it. */
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
  /** The largest applications, most bytes first; empty unless they were asked for. */
  applications: WindowApplication[];
}

export interface WindowHost {
  address: string;
  rxBytes: number;
  txBytes: number;
  packets: number;
}

export interface WindowApplication {
  name: string;
  protocol: number;
  serverPort: number | null;
  clientBytes: number;
  serverBytes: number;
}

/** One client, server, service and name in one minute. */
export interface UsageRow {
  client: string;
  server: string;
  /** IP protocol number: 6 TCP, 17 UDP, … */
  protocol: number;
  /** Server port, or null where the protocol has none. */
  serverPort: number | null;
  direction: UsageDirection;
  /** Registrable domain, protocol label, or the remote address (NET-2.2.3). */
  name: string;
  evidence: NameEvidence;
  clientBytes: number;
  serverBytes: number;
  packets: number;
  /**
   * Unix milliseconds at which the client and the server last sent, 0 for never within the minute. Resets, openings and
   * their bare answers, and ICMP errors are no sending (NET-2.4.4).
   */
  clientLastSentMs: number;
  serverLastSentMs: number;
}
