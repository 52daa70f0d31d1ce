/**
 * The counters of a capture. `packets` is `ipPackets` + `nonIpPackets` + `parserDropped`, exactly.
 */

/** Counters of the open minute, or of the whole file. */
export interface Totals {
  packets: number;
  ipPackets: number;
  ipBytes: number;
  nonIpPackets: number;
  parserDropped: number;
  kernelDropped: number;
  detailTruncated: number;
  /** Frames that receive or send offload merged out of an unknown number of packets; each counts as one packet. */
  mergedFrames: number;
}

/** Counters at zero. */
export function emptyTotals(): Totals {
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
