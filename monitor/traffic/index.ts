/**
 * Minute facts: what every capture saw, and what an address really exchanged.
 *
 * Facts come in only through `addMinutes` and `addGaps`, inside the inbox's transaction, so an upload applies once.
 * Captures overlap (the uplink sees what the bridge saw): readers get one strongest capture per address and minute and
 * never a sum of captures (NET-2.4.2). Different uploads of one window add (NET-2.2.9). What was not collected is a
 * gap, never a zero. Minutes are the second at which they start, since 1970.
 */
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addMinutes } from './add-minutes.ts';
import type { AddressMinute } from './address-minute.ts';
import { type CaptureLoss, listLosses } from './loss-store.ts';
import { readAddressMinutes } from './read-address-minutes.ts';
import { readSiteTraffic, type SiteTraffic } from './read-site-traffic.ts';
import { rollUpSites } from './roll-up-sites.ts';
import * as store from './store.ts';

export type { AddressMinute, ObservedMinute } from './address-minute.ts';
export type { SiteTraffic } from './read-site-traffic.ts';
export type { CaptureState, Collection, GapRow, TopAddress } from './store.ts';

/** An upload's origin. */
export interface Origin {
  siteId: number;
  sensorId: number;
}

export type { CaptureLoss } from './loss-store.ts';

export interface Traffic {
  /** Makes the days' partitions; outside the transaction that adds to them, because it takes locks of its own. */
  prepare(minutes: readonly number[]): Promise<void>;
  /** Adds what captures saw. Give the transaction that decides that this upload applies now. */
  addMinutes(trx: Queryable, origin: Origin, minutes: readonly TelemetryMinute[]): Promise<CaptureIds>;
  /** Notes minutes that were not, or not wholly, collected. */
  addGaps(trx: Queryable, origin: Origin, gaps: readonly GapInput[]): Promise<void>;
  /** Brings sites' minutes up to date after facts were added. Safe beside others that do the same. */
  rollUp(): Promise<void>;
  /** Every minute from `fromMinute` (inclusive) to `toMinute` (exclusive) of an exact address, in order. */
  readAddressMinutes(
    siteId: number,
    address: string,
    fromMinute: number,
    toMinute: number,
  ): Promise<AddressMinute[]>;
  /** A site's traffic in steps, both ends in milliseconds on whole steps. */
  readSiteTraffic(siteId: number, fromMs: number, toMs: number, stepSeconds: number): Promise<SiteTraffic>;
  /** The addresses with the most traffic of a range of at most a day. */
  listTopAddresses(siteId: number, fromMs: number, toMs: number, limit: number): Promise<store.TopAddress[]>;
  /** Gaps that touch the range, newest first. */
  listGaps(siteId: number, fromMs: number, toMs: number, limit: number): Promise<store.GapRow[]>;
  /** Every capture of the site with its newest minute and its losses of the last hour. */
  listCaptures(siteId: number): Promise<store.CaptureState[]>;
  /** What each capture of any site lost in its newest whole minutes, by the database's clock. */
  listLosses(minutes: number): Promise<CaptureLoss[]>;
  /** What the site's captures collected and lost in a range (NET-2.2.6). */
  readCollection(siteId: number, fromMs: number, toMs: number): Promise<store.Collection>;
  /** Start of the newest minute with facts of each site that has any, unix milliseconds. */
  newestMinutes(): Promise<Map<number, number>>;
}

/** Ids of an upload's captures by their names. */
export type CaptureIds = ReadonlyMap<string, number>;

/** A gap as sensors tell it, or `rejected`: the upload with these minutes could not be applied. */
export type GapInput = Omit<TelemetryGap, 'reason'> & { reason: TelemetryGap['reason'] | 'rejected' };

export function createTraffic(deps: { db: () => Queryable }): Traffic {
  const { db } = deps;
  const partitions = store.createPartitionMaker();
  return {
    prepare: (minutes) => partitions.ensureDays(db(), minutes),
    addMinutes: (trx, origin, minutes) => addMinutes(trx, origin, minutes),
    addGaps: (trx, origin, gaps) => store.insertGaps(trx, origin, gaps),
    rollUp: () => rollUpSites(db()),
    readAddressMinutes: (siteId, address, fromMinute, toMinute) =>
      readAddressMinutes(db(), { siteId, address, fromMinute, toMinute }),
    readSiteTraffic: (siteId, fromMs, toMs, stepSeconds) =>
      readSiteTraffic(db(), { siteId, fromMs, toMs, stepSeconds }),
    listTopAddresses: (siteId, fromMs, toMs, limit) =>
      store.listTopAddresses(db(), siteId, fromMs, toMs, limit),
    listGaps: (siteId, fromMs, toMs, limit) => store.listGaps(db(), siteId, fromMs, toMs, limit),
    listCaptures: (siteId) => store.listCaptures(db(), siteId),
    listLosses: (minutes) => listLosses(db(), minutes),
    readCollection: (siteId, fromMs, toMs) => store.sumCollection(db(), siteId, fromMs, toMs),
    newestMinutes: () => store.newestMinutes(db()),
  };
}
