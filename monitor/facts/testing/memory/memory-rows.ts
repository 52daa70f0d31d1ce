/** What reads of the engine in memory start from: its rows, with what other nodes' servers had told apart. */
import { isForeign, type Placement } from '#monitor/placements/index.ts';
import type { NameApplication } from '../../contract/collect-facts.ts';
import type * as facts from '../../contract/facts.ts';
import {
  appendUploads,
  type CaptureRowOfMinute,
  createMemoryState,
  type HostRow,
  type KnownCapture,
  type UsageFact,
} from './memory-append.ts';

/** Where servers are, as the engine under test knows it. */
export interface PlacementBook {
  /** Rows about an address as they look from a sensor. */
  placementsOf(sensorId: number, address: string): (Placement & { isOpen: boolean })[];
  /** Up to when open rows are certain, unix seconds. */
  certainUntil(): number;
}

export interface MemoryRows {
  readonly book: PlacementBook;
  /** Adds uploads whose tokens are new, and removes minutes that they observed whole from gaps, their own too. */
  append(uploads: readonly facts.FactUpload[]): void;
  sites(): number[];
  knownCaptures(siteId: number): KnownCapture[];
  captures(siteId: number): CaptureRowOfMinute[];
  /** What counts. */
  hosts(siteId: number): HostRow[];
  /** What sensors told of other nodes' addresses. */
  foreignHosts(siteId: number): HostRow[];
  usage(siteId: number): UsageFact[];
  gaps(range: facts.SiteRange): facts.GapFact[];
  captureGaps(range: facts.SiteRange, captureIds: ReadonlySet<number>): facts.CaptureGap[];
  isYoung(minute: number): boolean;
}

export function createMemoryRows(
  nameApplication: NameApplication,
  nowSecond: () => number,
  book: PlacementBook,
): MemoryRows {
  const state = createMemoryState();
  const { known, captures, hosts, usage } = state;
  const isOther = (capture: CaptureRowOfMinute, address: string | null) =>
    address !== null && isForeign(book.placementsOf(capture.sensorId, address), capture.minute);
  return {
    book,
    append: (uploads) => appendUploads(state, uploads, nameApplication),
    sites: () => [...new Set([...captures.values()].map((one) => one.siteId))],
    knownCaptures: (siteId) => [...known.values()].filter((one) => one.siteId === siteId),
    captures: (siteId) => [...captures.values()].filter((one) => one.siteId === siteId),
    hosts: (siteId) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && !isOther(capture, address),
      ),
    foreignHosts: (siteId) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && isOther(capture, address),
      ),
    usage: (siteId) =>
      usage.filter(({ capture, local }) => capture.siteId === siteId && !isOther(capture, local)),
    gaps: (range) =>
      state.gaps
        .filter((gap) => gap.siteId === range.siteId)
        .filter((gap) => gap.toMinute >= range.fromMinute && gap.fromMinute < range.toMinute)
        .map(({ siteId: _, ...gap }) => gap),
    captureGaps(range, captureIds) {
      return this.gaps(range)
        .flatMap(({ sensorId, capture, fromMinute, toMinute, reason }) =>
          [...known.values()]
            .filter((one) => one.sensorId === sensorId && (capture === '' || capture === one.name))
            .filter((one) => captureIds.has(one.captureId))
            .map(({ captureId }) => ({ captureId, fromMinute, toMinute, reason })),
        )
        .sort(
          (a, b) =>
            a.captureId - b.captureId ||
            a.fromMinute - b.fromMinute ||
            a.toMinute - b.toMinute ||
            (a.reason < b.reason ? -1 : 1),
        );
    },
    isYoung: (minute) => minute >= nowSecond() - 86_400,
  };
}
