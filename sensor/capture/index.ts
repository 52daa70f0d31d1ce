/**
 * The packet path: frames in, counters and names out.
 *
 * Promises: every frame counts exactly once (`packets = ipPackets + nonIpPackets + parserDropped`); bytes are IP
 * total lengths of the outermost header; `observe` never throws and allocates nothing on the ordinary path; memory
 * is bounded, and what finds no room is counted in `detailTruncated` while the totals of local addresses stay exact.
 */
import { MinuteCapture } from './minute-capture.ts';
import type { CaptureRole, MinuteReport, WindowReport } from './minute-report.ts';

export type {
  CaptureRole,
  CaptureTotals,
  HostCounters,
  MinuteReport,
  NameEvidence,
  UsageDirection,
  UsageRow,
  WindowApplication,
  WindowHost,
  WindowReport,
} from './minute-report.ts';

/** What counts as local, as canonical text: prefixes (`192.0.2.0/24`, `2001:db8::/48`) and exact addresses. */
export interface LocalScope {
  prefixes: readonly string[];
  addresses: readonly string[];
}

export interface CaptureOptions {
  /** The interface's name; also the segment of device keys. */
  name: string;
  role: CaptureRole;
  /** Link type as numbered in capture files: 1 is Ethernet. */
  linkType: number;
  /**
   * Reduces a host to its registrable domain, null where there is none. Injected because the packet path imports no
   * package. Called once for each new name, not for each packet.
   */
  registrableDomain(host: string): string | null;
  local: LocalScope;
  /** Key of the hash tables, random by default, so that nobody outside can aim at one bucket. */
  hashKey?: readonly [number, number];
  /** Names on the outside of encrypted hellos; the well-known ones by default. */
  outerNames?: readonly string[];
  /**
   * Part of one capture's tables that this one gets, 1 by default: fanout members share what one capture may hold, and
   * more captures than four share what a process may hold (NET-8.6).
   */
  share?: number;
  /**
   * Puts the time of a frame that is not of the open window into what can be. Asked for such frames alone; all are believed
   * unless given.
   */
  believe?(seconds: number): number;
  /** Flows this capture may hold; its share of 32,768 by default. */
  flowsMax?: number;
  /** Length of live windows, a divisor of a minute; none are made unless it is given. */
  windowMs?: number;
  /** Applications that each window names, the largest first; none unless given. */
  windowApplicationsMax?: number;
}

export interface Capture {
  /**
   * One frame out of `bytes` at `offset`. `vlanTci` is the tag that the kernel took off the frame, -1 for none.
   * `segments` is how many packets of the wire offload merged into it: 1 unless told, 0 for "merged, nobody knows".
   * Never throws. Hand in the same `bytes` object for frames of one buffer: a view is made for each new one.
   */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    nanoseconds: number,
    vlanTci: number,
    segments?: number,
  ): void;
  /** Replaces the local scope; flows that are open are judged anew. */
  setLocal(local: LocalScope): void;
  /** Adds packets that the kernel dropped since the last call to the open minute. */
  addKernelDropped(packets: number): void;
  /** Marks from when on this capture listens (unix ms), so that `observedMs` is true for its first minute. */
  listeningSince(ms: number): void;
  /**
   * Closes every minute that ended at or before `nowMs`, oldest first; a minute without a frame gives a report of
   * zeros. A frame of a later minute closes the open one by itself; its report waits for the next call.
   */
  closeMinutes(nowMs: number): MinuteReport[];
  /**
   * Windows that ended at or before `nowMs`, oldest first; empty unless `windowMs` was given. Windows of a minute add
   * up to its report, but for what came late over a boundary.
   */
  closeWindows(nowMs: number): WindowReport[];
  /** Closes everything, the open minute too, as at `nowMs` (for an orderly stop). */
  closeAll(nowMs: number): MinuteReport[];
}

/** Makes a capture. It holds its tables from the start (about 7 MiB, at most 8 MiB) and starts nothing. */
export function createCapture(options: CaptureOptions): Capture {
  return new MinuteCapture(options);
}

export { isSupportedLinkType } from './decode-link.ts';
export { isPlainByte, type RawAnswer } from './listed-answer.ts';
export {
  ApplicationRow,
  type ApplicationRows,
  FlowRow,
  type FlowRows,
  type ListedAnswer,
  type ListedApplication,
  type ListedConversation,
  type ListedEnd,
  type ListedFlow,
  type ListedHost,
  type ListedRows,
  type RawRow,
  type RowWeight,
  type TableRows,
} from './listed-rows.ts';
export type { CutCounts } from './listing.ts';
export {
  type CountedUsage,
  createReading,
  type Reading,
  type ReadingOptions,
  type ReadingResult,
} from './reading.ts';
export { type PageFile, pageBytes } from './row-store.ts';
export { keyAt } from './summing-table.ts';
