/**
 * Rows whose counters can't be true. They are left out by name, so that a fault of one counter costs that counter and not
 * the whole upload.
 */

/** What 400 Gbit/s carry in one direction in a minute. */
const linkMinuteBytesMax = 3e12;
/** The largest packet: an IPv6 header and a payload of 65,535 bytes. */
const packetBytesMax = 65_575;
/** The largest frame that offload merges out of an unknown number of packets. */
const mergedBytesMax = 524_328;

/** An address whose counters of a minute were left out. */
export interface SetAsideHost {
  /** Start of the minute, seconds since 1970. */
  minute: number;
  capture: string;
  address: string;
}

/** What was left out of a live upload: host rows, and whole windows whose totals can't be true. */
export interface LiveSetAside {
  rows: number;
}

/** What was left out of an upload. */
export interface SetAside {
  hosts: SetAsideHost[];
  /** Usage rows; they count in `detail_truncated` of their minute. */
  usageRows: number;
  /** Minutes of a capture whose totals can't be true; each became a gap of reason `refused`. */
  minutes: number;
}

export function createSetAside(): SetAside {
  return { hosts: [], usageRows: 0, minutes: 0 };
}

/** How many rows were left out. */
export function countSetAside({ hosts, usageRows, minutes }: SetAside): number {
  return hosts.length + usageRows + minutes;
}

/** A counter as a number; infinite when a double can't hold it exactly, which no bound takes. */
export function looseCount(value: bigint): number {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : Number.POSITIVE_INFINITY;
}

const minuteMs = 60_000;

/**
 * True when a link can carry so much in so many packets within this time, a minute where none is given, and a double holds
 * all of it.
 */
export function isPlausible(
  bytes: readonly [number, number],
  packets: number,
  hasMergedFrames: boolean,
  observedMs = minuteMs,
): boolean {
  const [one, other] = bytes;
  const bytesMax = (linkMinuteBytesMax * observedMs) / minuteMs;
  if (one > bytesMax || other > bytesMax || !Number.isSafeInteger(packets)) return false;
  return one + other <= packets * (hasMergedFrames ? mergedBytesMax : packetBytesMax);
}
