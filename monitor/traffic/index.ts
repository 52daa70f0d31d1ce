/**
 * Traffic of addresses, devices and sites, read from the facts.
 *
 * The facts select one strongest capture for each address and minute (NET-2.4.2). This feature separates zeros
 * (observed without traffic) from gaps (not observed). Minutes are identified by their start in seconds since 1970.
 */
import type {
  AddressRange,
  CaptureFacts,
  CaptureLosses,
  CaptureOutage,
  CaptureRow,
  FactStore,
  GapFact,
} from '#monitor/facts/index.ts';
import { type PlanSection, versionSection } from '#monitor/sensors/index.ts';
import type { SetAsides } from '#monitor/set-asides/index.ts';
import { nameSensors as findSensors } from '#monitor/views/sensor-store.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { type AddressMinute, type DeliveredMinutes, readAddressesMinutes } from './address-minute.ts';

export type { AddressMinute, DeliveredMinutes, ObservedMinute } from './address-minute.ts';

export interface GapRow extends GapFact {
  hostName: string;
}

/** A capture with its losses of the last hour. */
export interface CaptureState extends CaptureFacts {
  hostName: string;
}

/** The source of a number: one capture's row of an address and minute. */
export interface Provenance extends CaptureRow {
  hostName: string;
}

/** Losses of a capture of any site in a few minutes. */
export interface CaptureLoss extends CaptureLosses {
  hostName: string;
}

export type Traffic = ReturnType<typeof createTraffic>;

const at = (segment: string | undefined) => (segment === undefined ? {} : { segment });

/** A range in milliseconds, in the form of the facts. */
const rangeOf = (siteId: number, fromMs: number, toMs: number) => ({
  siteId,
  fromMinute: fromMs / 1000,
  toMinute: toMs / 1000,
});

export function createTraffic(deps: {
  db: () => Queryable;
  facts: FactStore;
  /** Counters that were left out of uploads; without it there are none. */
  setAsides?: Pick<SetAsides, 'listMinutes'>;
}) {
  const { db, facts } = deps;
  /** Rows of sensors with the names of their hosts. */
  async function named<T extends { sensorId: number }>(
    rows: readonly T[],
  ): Promise<(T & { hostName: string })[]> {
    const sensors = await findSensors(db(), [...new Set(rows.map((row) => row.sensorId))]);
    return rows.map((row) => ({ ...row, hostName: sensors.get(row.sensorId)?.hostName ?? '' }));
  }
  return {
    /**
     * Every minute from `fromMinute` (inclusive) to `toMinute` (exclusive) of an exact address, in order; with a segment
     * unless it is globally unique.
     */
    async readAddressMinutes(
      siteId: number,
      address: string,
      fromMinute: number,
      toMinute: number,
      segment?: string,
    ): Promise<AddressMinute[]> {
      const range = { siteId, address, fromMinute, toMinute, ...at(segment) };
      return (await readAddressesMinutes(facts, [range], deps.setAsides?.listMinutes))[0]!;
    },
    /**
     * The same for many ranges, in their order; costs little more than one range. A gap after what a listening capture has
     * `delivered` says that the minute is not finished.
     */
    readAddressesMinutes: (ranges: readonly AddressRange[], delivered?: DeliveredMinutes) =>
      readAddressesMinutes(facts, ranges, deps.setAsides?.listMinutes, delivered),
    /** Of these minutes of addresses, each capture that told of one and may speak for it. */
    listSpeakers: (siteId: number, asked: Parameters<FactStore['listSpeakers']>[1]) =>
      facts.listSpeakers(siteId, asked),
    /** Every capture's row of an address in these minutes, the chosen one of each minute first, with the reason. */
    explainAddress: async (
      siteId: number,
      address: string,
      fromMinute: number,
      toMinute: number,
      segment?: string,
    ): Promise<Provenance[]> =>
      named(await facts.explainAddress({ siteId, address, fromMinute, toMinute, ...at(segment) })),
    /** A site's traffic in steps; both ends in milliseconds, on whole steps. */
    readSiteTraffic: (siteId: number, fromMs: number, toMs: number, stepSeconds: number) =>
      readSiteTraffic(facts, { siteId, fromMs, toMs, stepSeconds }),
    /** The addresses with the most traffic of a range. */
    listTopAddresses: (siteId: number, fromMs: number, toMs: number, limit: number) =>
      facts.listTopAddresses(rangeOf(siteId, fromMs, toMs), limit),
    /**
     * WAN and LAN bytes of devices by their `segment|MAC`, in the given order (NET-2.2.10). Null means unavailable: no
     * counters with an owner arrived. `sourceLimited`: a limit cut the read.
     */
    sumDevices: (siteId: number, deviceKeys: readonly string[], fromMs: number, toMs: number) =>
      facts.sumDevices(rangeOf(siteId, fromMs, toMs), deviceKeys),
    /** One device over time; read a month in steps of a day. Steps without owned counters are left out. */
    readDevice: (siteId: number, deviceKey: string, fromMs: number, toMs: number, stepSeconds: number) =>
      facts.stepDevice({ ...rangeOf(siteId, fromMs, toMs), deviceKey, stepSeconds }),
    /** A sensor's reports about addresses of other nodes, the most bytes first. */
    listForeign: (siteId: number, fromMs: number, toMs: number, sensorId: number, limit: number) =>
      facts.listForeign({ ...rangeOf(siteId, fromMs, toMs), sensorId }, limit),
    /** Gaps in the range, newest first. */
    listGaps: async (siteId: number, fromMs: number, toMs: number, limit: number): Promise<GapRow[]> =>
      named(await facts.listGaps(rangeOf(siteId, fromMs, toMs), limit)),
    /** Every capture of the site's sensors with its newest minute and its losses of the last hour. */
    async listCaptures(siteId: number): Promise<CaptureState[]> {
      const nowMs = await readNowMs(db());
      const rows = await facts.listCaptures(siteId, Math.floor(nowMs / 60_000) * 60 - 3600);
      const sensors = await findSensors(db(), [...new Set(rows.map((row) => row.sensorId))]);
      return rows
        .filter((row) => sensors.get(row.sensorId)?.isRevoked === false)
        .map((row) => ({ ...row, hostName: sensors.get(row.sensorId)!.hostName }))
        .sort(
          (a, b) => compare(a.hostName, b.hostName) || compare(b.role, a.role) || compare(a.name, b.name),
        );
    },
    /** State of each capture of any site in the last minutes, by the database's clock. */
    async listOutages(minutes: number): Promise<CaptureOutage[]> {
      const since = Math.floor((await readNowMs(db())) / 60_000) * 60 - minutes * 60;
      return facts.listOutages(since);
    },
    /** Losses of each capture of any site in the last complete minutes, by the database's clock. */
    async listLosses(minutes: number): Promise<CaptureLoss[]> {
      const toMinute = Math.floor((await readNowMs(db())) / 60_000) * 60;
      const rows = await facts.listLosses(toMinute - minutes * 60, toMinute);
      const sensors = await findSensors(db(), [...new Set(rows.map((row) => row.sensorId))]);
      return rows
        .filter((row) => sensors.get(row.sensorId)?.isRevoked === false)
        .map((row) => ({ ...row, hostName: sensors.get(row.sensorId)!.hostName }));
    },
    /** Collected and lost packets of the site's captures in a range (NET-2.2.6). */
    readCollection: (siteId: number, fromMs: number, toMs: number) =>
      facts.sumCollection(rangeOf(siteId, fromMs, toMs)),
    /** Start of the newest minute with facts of each site that has any, unix milliseconds. */
    newestMinutes: async () =>
      new Map([...(await facts.newestMinutes())].map(([siteId, minute]) => [siteId, minute * 1000])),
  };
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Limits of a capture's minutes (NET-9.4): number of usage rows, and recognised IP protocols (NET-2.2.4). */
export const captureSection: PlanSection = versionSection('capture', {
  application_usage_version: 1,
  application_protocol_version: 1,
});

/** A site's traffic over time: the sum over its addresses, each at its strongest capture. */
export interface SiteTraffic {
  /** Start of each step. */
  timesMs: number[];
  /** Mean rates over the observed minutes of the step, bits and packets per second; null without one. */
  inBps: (number | null)[];
  outBps: (number | null)[];
  pps: (number | null)[];
  /** Most addresses seen in one minute of the step. */
  addresses: (number | null)[];
  /** Observed minutes of the step. */
  minutes: number[];
}

/** Reads the range in steps; a step without an observed minute is a gap. */
async function readSiteTraffic(
  facts: Pick<FactStore, 'sumSite'>,
  range: { siteId: number; fromMs: number; toMs: number; stepSeconds: number },
): Promise<SiteTraffic> {
  const rows = await facts.sumSite({
    siteId: range.siteId,
    fromMinute: range.fromMs / 1000,
    toMinute: range.toMs / 1000,
    stepSeconds: range.stepSeconds,
  });
  const byTime = new Map(rows.map((row) => [row.timeMs, row]));
  const traffic: SiteTraffic = { timesMs: [], inBps: [], outBps: [], pps: [], addresses: [], minutes: [] };
  for (let timeMs = range.fromMs; timeMs < range.toMs; timeMs += range.stepSeconds * 1000) {
    const row = byTime.get(timeMs);
    const seconds = (row?.minutes ?? 0) * 60;
    traffic.timesMs.push(timeMs);
    traffic.inBps.push(row ? (row.rxBytes * 8) / seconds : null);
    traffic.outBps.push(row ? (row.txBytes * 8) / seconds : null);
    traffic.pps.push(row ? row.packets / seconds : null);
    traffic.addresses.push(row?.addresses ?? null);
    traffic.minutes.push(row?.minutes ?? 0);
  }
  return traffic;
}
