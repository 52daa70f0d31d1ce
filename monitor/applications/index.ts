/**
 * Applications of local addresses, by evidence (NET-2.2.3), and connections of the last 24 hours.
 *
 * Uplink and bridge see the same traffic: one vantage point owns each site-minute and direction (NET-2.2.5), and the
 * facts never add two. This feature has the names, the views of the console, and the notices beside the numbers
 * (NET-2.2.6).
 */

import type { Clock } from '#common/clock/index.ts';
import {
  type AddressRange,
  type ApplicationKey,
  type ApplicationUse,
  type ExploredAmount,
  type FactStore,
  keyText,
  type SiteRange,
} from '#monitor/facts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createRankingReader } from './rank-day.ts';
import { type ApplicationView, listSteps, type StepsRange, viewRange } from './views.ts';

export { describeService, nameApplication } from './catalog.ts';
export { createRankingLoop } from './rank-day.ts';
export { type ApplicationView, applicationViews } from './views.ts';

const dayMs = 86_400_000;
/** An older stored ranking was not renewed in time. */
const renewedMs = 900_000;

export type Applications = ReturnType<typeof createApplications>;

export function createApplications(deps: {
  db: () => Queryable;
  facts: FactStore;
  clock: Clock;
  /** How long a ranking is cached. */
  rankingHoldSeconds: number;
}) {
  const { facts } = deps;
  const ranking = createRankingReader({ ...deps, holdSeconds: deps.rankingHoldSeconds });
  return {
    /** The same for many ranges, in their order; null when there are too many rows. */
    readAddressesApplications: (ranges: readonly AddressRange[], rowsMax: number) =>
      facts.readAddressesApplications(ranges, rowsMax),
    /**
     * Internet applications of an exact local address by minute, from `fromMinute` (inclusive) to `toMinute` (exclusive),
     * in both roles: as client (outbound) and as host of a service (inbound) (NET-2.4.4).
     */
    readAddressApplications: (siteId: number, address: string, fromMinute: number, toMinute: number) =>
      facts.readAddressApplications({ siteId, address, fromMinute, toMinute }),
    /**
     * Applications that a local address used and hosted over the Internet in a range, largest first: its part of the
     * site's list, where one vantage point owns the bytes of a minute (NET-2.2.5).
     */
    sumAddressApplications: (
      siteId: number,
      address: string,
      fromMinute: number,
      toMinute: number,
      segment?: string,
    ) =>
      facts.sumAddressApplications({
        siteId,
        address,
        fromMinute,
        toMinute,
        ...(segment === undefined ? {} : { segment }),
      }),
    /**
     * A site's applications of a range by bytes, largest first. For a range around the last day the top connections come
     * from its stored ranking, if there are any. `nameContains` filters the rows and their total, but not the sums.
     */
    async list(
      siteId: number,
      view: ApplicationView,
      fromMs: number,
      toMs: number,
      limit: number,
      nameContains = '',
    ): Promise<ApplicationUse> {
      const range = { ...viewRange(siteId, view, fromMs, toMs), limit, nameContains };
      const nowMs = deps.clock.nowMs();
      // A range that was requested slightly earlier still covers the last day.
      const day = fromMs <= nowMs - dayMs + 60_000 ? await ranking(siteId, view) : null;
      // Pairs are kept for a day, so every range around it has those of the stored ranking, if the ranking is recent.
      const isAround = day && day.toMs <= toMs && day.computedAtMs > nowMs - renewedMs;
      if (!isAround) return facts.rankApplications(range);
      const topConnections = new Map(day.use.rows.map((row) => [keyText(row), row.topConnection]));
      return facts.rankApplications({ ...range, topConnections });
    },
    /**
     * The stored ranking of the last 24 hours, recomputed every five minutes and cached here for a while (NET-8.8); null:
     * not computed yet.
     */
    ranking,
    /**
     * Details of one row (NET-2.2.2): at most ten destinations, ten devices and five pairs, with counts of all. Devices
     * are the `segment|MAC` of those minutes; labels are the devices' present ones.
     */
    detail: (siteId: number, view: ApplicationView, fromMs: number, toMs: number, key: ApplicationKey) =>
      facts.readApplication({ ...viewRange(siteId, view, fromMs, toMs), ...key }),
    /** Notices to show beside the list (NET-2.2.6). */
    notices: (siteId: number, view: ApplicationView, fromMs: number, toMs: number, use: ApplicationUse) =>
      readNotices(facts, viewRange(siteId, view, fromMs, toMs), use),
    /** Exact pairs of the last 24 hours and their evidence, by minute, the busiest first (NET-2.2.7). */
    listPairs: (siteId: number, view: ApplicationView, fromMs: number, toMs: number, limit: number) =>
      facts.listPairs(viewRange(siteId, view, fromMs, toMs), limit),
    /** Bytes over time of some applications of the list, and under a null name of all others; steps without bytes are left out. */
    listSteps: (range: StepsRange) => listSteps(facts, range),
  };
}

/** Notices beside a list of applications (NET-2.2.6). Ratios are null without bytes. */
export interface CollectionNotices {
  /** Any parser loss makes the window partial; lost bytes are never estimated. */
  isPartial: boolean;
  /** Part of the packets that was captured. */
  packetCoverage: number | null;
  /** Parts of the bytes: named by evidence, named by port alone, and of addresses with a known device. */
  domainRatio: number | null;
  portRatio: number | null;
  deviceRatio: number | null;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
}

/** The notices of a window, from the sums of its applications. */
async function readNotices(
  facts: Pick<FactStore, 'sumCollection' | 'explore'>,
  { siteId, fromMinute, toMinute }: SiteRange,
  use: { bytes: number; domainBytes: number; portBytes: number },
): Promise<CollectionNotices> {
  const range = { siteId, fromMinute, toMinute };
  const [collection, ofDevices] = await Promise.all([
    facts.sumCollection(range),
    facts.explore({
      ...{ ...range, source: 'addresses', filters: [], owners: [], networks: [], measure: 'bytes' },
      // What has no known device.
      ...{ by: ['device'], stepSeconds: null, order: 'size', rows: { keys: [[null]] } },
    }),
  ]);
  const bytesOf = (one?: ExploredAmount) => (one ? one.inBytes + one.outBytes : 0);
  const [bytes, unownedBytes] = [bytesOf(ofDevices.total), bytesOf(ofDevices.rows[0])];
  const { packets, kernelDropped, parserDropped, detailTruncated } = collection;
  const ratio = (part: number, whole: number) => (whole > 0 ? part / whole : null);
  return {
    isPartial: parserDropped > 0,
    packetCoverage: ratio(packets, packets + kernelDropped),
    domainRatio: ratio(use.domainBytes, use.bytes),
    portRatio: ratio(use.portBytes, use.bytes),
    deviceRatio: ratio(bytes - unownedBytes, bytes),
    packets,
    kernelDropped,
    parserDropped,
    detailTruncated,
  };
}
