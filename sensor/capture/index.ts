/**
 * The packet path: reads frames, returns counters and names.
 *
 * Guarantees: every frame counts exactly once (`packets = ipPackets + nonIpPackets + parserDropped`). Bytes are IP
 * total lengths of the outermost header. `observe` never throws and does not allocate on the ordinary path. Memory is
 * bounded: details without room are counted in `detailTruncated`, and the totals of local addresses stay exact.
 *
 * A frame passes `decode/` (link, IP, fragments, tunnels), `flows/` (the table of flows and their counters), `names/` (what
 * clients say and look up) and `reports/` (addresses, rows, minutes, the lists of a reading). `engine.ts` joins them.
 * A `PacketTap` receives what is counted; `sensor/attack-counters` is one.
 */

import type { CaptureOptions } from './capture.ts';
import { MinuteCapture } from './minute-capture.ts';

export type { CaptureOptions, LocalScope } from './capture.ts';
export type { MinuteCapture as Capture } from './minute-capture.ts';

export type {
  HostCounters,
  MinuteReport,
  UsageRow,
  WindowApplication,
  WindowHost,
  WindowReport,
} from './reports/minute-report.ts';

/** Creates a capture. It allocates its tables at once (about 7 MiB, at most 8 MiB) and starts nothing. */
export function createCapture(options: CaptureOptions): MinuteCapture {
  return new MinuteCapture(options);
}

export { formatWords, parseWords } from './address-words.ts';
export type { PacketTap } from './capture.ts';
export { decodeFrame, isSupportedLinkType } from './decode/decode-link.ts';
export { Packet, Protocol, Verdict } from './decode/packet.ts';
export { Exchange, exchangeOf, Field, Meaning, noteState } from './flows/flow-record.ts';
export { FlowTable } from './flows/flow-table.ts';
export { KeyedTable, mixHash } from './keyed-table.ts';
export { compileLocalScope, type LocalRanges } from './local-scope.ts';
export type { OwnScan } from './own-scans.ts';
export { randomKey } from './random-key.ts';
export {
  type CountedUsage,
  createReading,
  type Reading,
  type ReadingOptions,
  type ReadingResult,
} from './reading.ts';
export { deviceKeyText } from './reports/address-owners.ts';
export {
  ApplicationRow,
  type ApplicationRows,
  FlowRow,
  isPlainByte,
  type ListedAnswer,
  type ListedApplication,
  type ListedConversation,
  type ListedEnd,
  type ListedFlow,
  type ListedRows,
  type RawAnswer,
  type RawRow,
  type RowWeight,
  type TableRows,
} from './reports/listed-rows.ts';
export { type PageFile, pageBytes } from './reports/row-store.ts';
export { keyAt } from './reports/summing-table.ts';
