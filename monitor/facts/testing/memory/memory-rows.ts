/** What reads of the engine in memory start from: its rows, with what other nodes' servers had told apart. */
import { isForeign, type Placement } from '#monitor/placements/index.ts';
import type { NameApplication } from '../../contract/collect-facts.ts';
import type * as facts from '../../contract/facts.ts';
import { appendUploads, type CaptureRowOfMinute, createMemoryState } from './memory-append.ts';

/** Where servers are, as the engine under test knows it. */
export interface PlacementBook {
  /** Rows about an address as they look from a sensor. */
  placementsOf(sensorId: number, address: string): (Placement & { isOpen: boolean })[];
  /** Up to when open rows are certain, unix seconds. */
  certainUntil(): number;
}

export type MemoryRows = ReturnType<typeof createMemoryRows>;

export function createMemoryRows(
  nameApplication: NameApplication,
  nowSecond: () => number,
  book: PlacementBook,
) {
  const state = createMemoryState();
  const { known, captures, hosts, usage } = state;
  const isOther = (capture: CaptureRowOfMinute, address: string | null) =>
    address !== null && isForeign(book.placementsOf(capture.sensorId, address), capture.minute);
  return {
    book,
    /** Adds uploads whose tokens are new, and removes minutes that they observed whole from gaps, their own too. */
    append: (uploads: readonly facts.FactUpload[]) => appendUploads(state, uploads, nameApplication),
    sites: (): number[] => [...new Set([...captures.values()].map((one) => one.siteId))],
    knownCaptures: (siteId: number) => [...known.values()].filter((one) => one.siteId === siteId),
    captures: (siteId: number) => [...captures.values()].filter((one) => one.siteId === siteId),
    /** What counts. */
    hosts: (siteId: number) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && !isOther(capture, address),
      ),
    /** What sensors told of other nodes' addresses. */
    foreignHosts: (siteId: number) =>
      [...hosts.values()].filter(
        ({ capture, address }) => capture.siteId === siteId && isOther(capture, address),
      ),
    usage: (siteId: number) =>
      usage.filter(({ capture, local }) => capture.siteId === siteId && !isOther(capture, local)),
    gaps: (range: facts.SiteRange): facts.GapFact[] =>
      state.gaps
        .filter((gap) => gap.siteId === range.siteId)
        .filter((gap) => gap.toMinute >= range.fromMinute && gap.fromMinute < range.toMinute)
        .map(({ siteId: _, ...gap }) => gap),
    captureGaps(range: facts.SiteRange, captureIds: ReadonlySet<number>): facts.CaptureGap[] {
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
    isYoung: (minute: number) => minute >= nowSecond() - 86_400,
  };
}
