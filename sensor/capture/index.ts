/**
 * The packet path: reads frames, returns counters and names.
 *
 * Guarantees: every frame counts exactly once (`packets = ipPackets + nonIpPackets + parserDropped`). Bytes are IP
 * total lengths of the outermost header. `observe` never throws and does not allocate on the ordinary path. Memory is
 * bounded: details without room are counted in `detailTruncated`, and the totals of local addresses stay exact.
 *
 * A frame passes `decode/` (link, IP, fragments, tunnels), `flows/` (the table of flows and their counters), `names/` (what
 * clients say and look up) and `reports/` (addresses, rows, minutes, the lists of a reading). `engine.ts` joins them.
 * `attacks/` counts packets of protected addresses in one-second bins, for the detector.
 */

import type { Capture, CaptureOptions } from './capture.ts';
import { MinuteCapture } from './minute-capture.ts';

export type { Capture, CaptureOptions } from './capture.ts';

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
} from './reports/minute-report.ts';

/** Creates a capture. It allocates its tables at once (about 7 MiB, at most 8 MiB) and starts nothing. */
export function createCapture(options: CaptureOptions): Capture {
  return new MinuteCapture(options);
}

export {
  AttackCounters,
  type AttackCountersOptions,
  type DetailLimits,
  Direction,
} from './attacks/attack-counters.ts';
export { Kind, kindCount } from './attacks/packet-kind.ts';
export { Bin, binLength, type SlotTable } from './attacks/slot-table.ts';
export type { HeavyPrefix, TrafficDetail } from './attacks/traffic-detail.ts';
export { isSupportedLinkType } from './decode/decode-link.ts';
export {
  type CountedUsage,
  createReading,
  type Reading,
  type ReadingOptions,
  type ReadingResult,
} from './reading.ts';
export type { CutCounts } from './reports/flow-export.ts';
export { isPlainByte, type RawAnswer } from './reports/listed-answer.ts';
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
} from './reports/listed-rows.ts';
export { type PageFile, pageBytes } from './reports/row-store.ts';
export { keyAt } from './reports/summing-table.ts';
