/** What every engine of facts does, in the same way to the byte: `testing/conformance.ts` compares them. */
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { ControlScope } from './control-scope.ts';
import type { Exploration, Explored, ExploredReading, ExploredView } from './exploration.ts';
import type * as facts from './facts.ts';
import type { PeerNetworks } from './peer-networks.ts';

export interface FactStore extends PeerNetworks {
  /** Makes room for these minutes; outside the scope that appends, because it takes locks of its own. */
  prepare(minutes: readonly number[]): Promise<void>;
  /**
   * Adds uploads, those of one sensor in their order, and marks what they touch for the roll-up. Rows of one key add. Pairs
   * that are older than their 24 hours are left out. A minute that was observed whole, and for which nothing was stored
   * before, is removed from gaps that say it was not observed (`contracts/sensor-api/unobserved-gaps.ts`).
   *
   * Idempotent by token: of uploads with one sensor and token the first counts and the others add nothing,
   * independent of their contents and their batch. When it resolves, the facts are at least as durable as what the caller writes
   * in the scope: it marks an upload as applied after this, in the same scope, and repeats the append where the scope
   * did not commit.
   */
  append(uploads: readonly facts.FactUpload[], scope: ControlScope): Promise<void>;
  /**
   * Judges again, under the lock of placements, who may speak for these addresses; of the last 24 hours at most. Repeated, it
   * changes nothing.
   */
  rejudge(changed: readonly ChangedAddress[], scope: ControlScope): Promise<void>;
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
  /** Of these minutes of addresses, each capture that told of one and may speak for it; in any order. */
  listSpeakers(siteId: number, asked: readonly facts.AddressMinute[]): Promise<facts.Speaker[]>;
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

  /**
   * Sums of a range over any filters, by up to two dimensions, in steps. The numbers are those of the other reads: `addresses`
   * as `sumSite` and `listTopAddresses`, `applications` and `pairs` as `rankApplications` and `readApplication`, of captures that
   * count alone. Throws `facts.too_slow` where it takes too long.
   */
  explore(asked: Exploration): Promise<Explored>;
  /** The same of several views of one reading, in their order; an engine may read the facts of all of them at once. */
  exploreTogether(reading: ExploredReading, views: readonly ExploredView[]): Promise<Explored[]>;
}

// How an engine of facts with a server of its own stands. Figures are null while it does not answer.

export interface FactEngineState {
  name: string;
  /** What needs attention, as a sentence; null: nothing does. */
  problem: string | null;
  /** How long a small question took, milliseconds. */
  answerMs: number | null;
  /** Pieces of tables that are not merged yet, and what they hold. */
  parts: number | null;
  rows: number | null;
  bytes: number | null;
  /** Of its disk. */
  freeBytes: number | null;
}
