/**
 * Traffic facts: what captures counted in each minute, and what may be said of it.
 *
 * One interface, so that an engine for many machines can stand beside PostgreSQL; `testing/conformance.ts` is what every
 * engine has to answer alike, to the byte. Facts only ever come in by `append`, in the transaction that decides that an
 * upload applies, so that an upload counts once; what was uploaded twice under two numbers adds (NET-2.2.9).
 *
 * Four rules are the store's, because only it sees all captures at once:
 * - what a sensor tells of an address that a server of another node had is foreign: kept, shown as such, never counted;
 *   and only captures of the one node that had the server may say that the address was silent;
 * - captures overlap, so of an address and minute one strongest capture counts and never a sum (NET-2.2.10);
 * - of a site's minute and direction one vantage owns the bytes: the uplink for the Internet if it saw any, the bridges
 *   for internal traffic; what the others saw keeps its names and no bytes (NET-2.2.5). Among the owner's captures, of
 *   each local address the strongest counts;
 * - an address's minute belongs to the device that the captures which know one agree on; where they disagree, or where
 *   contributions to one capture's window disagree or do not know, it is nobody's (NET-2.2.9).
 *
 * Nothing else is decided here: names come from the catalog that the store is given, silence and gaps are told apart in
 * `traffic/`, views are the applications'. Answers depend on the facts alone, not on the order in which they came nor on
 * what has been rolled up: `rollUp` makes reads cheap and never changes one.
 *
 * Retention is `retention/kept.ts`, which names this engine's tables; an engine that forgets by itself needs no line.
 */
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type * as facts from './facts.ts';

export * from './facts.ts';
export { createFactStore, type NameApplication } from './postgres-facts.ts';
export { createRollUpLoop } from './roll-up-loop.ts';

export interface FactStore {
  /** Makes room for these minutes; outside the transaction that appends, because it takes locks of its own. */
  prepare(minutes: readonly number[]): Promise<void>;
  /**
   * Adds uploads, any number in one transaction, and marks what they touch for the roll-up. Rows of one key add. Pairs that
   * are older than their 24 hours are left out.
   */
  append(trx: Queryable, uploads: readonly facts.FactUpload[]): Promise<void>;
  /**
   * To be called before `append`, with the uploads in the order of their sensors. A minute that was observed whole, and for
   * which nothing was stored before, is removed from gaps that say it was not observed
   * (`contracts/sensor-api/unobserved-gaps.ts`). Returns the uploads with the rest of their own gaps.
   */
  trimUnobservedGaps<U extends facts.FactUpload>(trx: Queryable, uploads: readonly U[]): Promise<U[]>;
  /** Judges again, under the lock of placements, who may speak for these addresses; of the last 24 hours at most. */
  rejudge(trx: Queryable, changed: readonly ChangedAddress[]): Promise<void>;
  /**
   * Brings sites' sums by minute up to date; with `settled`, judges minutes that have settled and makes ten minutes, hours and
   * days of them, or with `all` of everything. Any number of processes may do so at once; one that is killed, or
   * told between two transactions that it may not go on, leaves the rest to the next.
   */
  rollUp(hours: 'none' | 'settled' | 'all', mayGoOn?: () => Promise<boolean>): Promise<void>;

  /** All that is known of an exact address in a range. */
  readAddress(range: facts.AddressRange): Promise<facts.AddressFacts>;
  /** The same of many ranges, in their order; costs little more than one of them. */
  readAddresses(ranges: readonly facts.AddressRange[]): Promise<facts.AddressFacts[]>;
  /** Every capture's row of an address, by minute, with which one counts and why. */
  explainAddress(range: facts.AddressRange): Promise<facts.CaptureRow[]>;
  /** What a sensor, or with null every one, told of other nodes' addresses, the most bytes first. */
  listForeign(
    range: facts.SiteRange & { sensorId: number | null },
    limit: number,
  ): Promise<facts.ForeignAddress[]>;
  /** A site's traffic after selection in steps; steps without an observed minute are left out. */
  sumSite(range: facts.SiteRange & { stepSeconds: number }): Promise<facts.SiteStep[]>;
  listTopAddresses(range: facts.SiteRange, limit: number): Promise<facts.TopAddress[]>;
  /** Gaps that touch the range, newest first. */
  listGaps(range: facts.SiteRange, limit: number): Promise<facts.GapFact[]>;
  /** Every capture of the site, its sums since that minute, by sensor and name. */
  listCaptures(siteId: number, sinceMinute: number): Promise<facts.CaptureFacts[]>;
  /** What each capture of any site lost in minutes from one (inclusive) to another (exclusive). */
  listLosses(fromMinute: number, toMinute: number): Promise<facts.CaptureLosses[]>;
  /** How every capture of any site stands since that minute. */
  listOutages(sinceMinute: number): Promise<facts.CaptureOutage[]>;
  /** What a site's captures collected and lost. */
  sumCollection(range: facts.SiteRange): Promise<facts.Collection>;
  /** Start of the newest minute with facts of each site that has any, seconds. */
  newestMinutes(): Promise<Map<number, number>>;

  /** What an exact local address used over the Internet, each minute and direction at one capture. */
  readAddressApplications(range: facts.AddressRange): Promise<facts.AddressApplication[]>;
  /** The same of many ranges, in their order; null where there are more rows than that. */
  readAddressesApplications(
    ranges: readonly facts.AddressRange[],
    rowsMax: number,
  ): Promise<facts.AddressApplication[][] | null>;
  /** A local address's part of the site's applications over the Internet, by bytes, largest first. */
  sumAddressApplications(range: facts.AddressRange): Promise<facts.AddressUse[]>;
  /** A range's applications by bytes, largest first, with the busiest pair of each. */
  rankApplications(range: facts.Ranking): Promise<facts.ApplicationUse>;
  /** Bytes over time of these names and, under null, of the rest. */
  stepApplications(
    range: facts.ViewRange & { stepSeconds: number; names: readonly string[] },
  ): Promise<facts.ApplicationStep[]>;
  /** Who used one application. */
  readApplication(range: facts.ViewRange & facts.ApplicationKey): Promise<facts.ApplicationDetail>;
  /** Exact pairs and what named them, by minute, the busiest first. */
  listPairs(range: facts.ViewRange, limit: number): Promise<facts.PairClassification[]>;

  /** Totals of devices by their `segment|MAC`, in the order given; unknown ones have nulls. */
  sumDevices(
    range: facts.SiteRange,
    deviceKeys: readonly string[],
  ): Promise<facts.Limited<facts.DeviceTotals>>;
  /** One device over time; steps without owned counters are left out. */
  stepDevice(
    range: facts.SiteRange & { deviceKey: string; stepSeconds: number },
  ): Promise<facts.Limited<facts.DeviceStep>>;
  /** How much of the range's bytes has a known owner. */
  sumOwned(range: facts.SiteRange): Promise<facts.OwnedShare>;
}
