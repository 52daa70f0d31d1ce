/** The counters of a capture. A new one is declared and started here; `docs/adding-a-record.md` names the other files. */

/** Counters of the open minute, of a live window, or of the whole file. */
export interface CaptureTotals {
  /** `ipPackets` + `nonIpPackets` + `parserDropped`, exactly. */
  packets: number;
  ipPackets: number;
  ipBytes: number;
  nonIpPackets: number;
  /** Captured but malformed or truncated (NET-2.2.6). */
  parserDropped: number;
  /** Dropped by the kernel before the parser saw them, if the source reports it. */
  kernelDropped: number;
  /** Packets whose details found no room in a bounded table; they are in all other counters. */
  detailTruncated: number;
  /** Frames that offload merged from an unknown number of packets. If there are any, `packets` is too low. */
  mergedFrames: number;
}

/** Counters at zero. */
export function emptyTotals(): CaptureTotals {
  return {
    packets: 0,
    ipPackets: 0,
    ipBytes: 0,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
    mergedFrames: 0,
  };
}
