/**
 * What a feed declares. Everything else follows from the declaration: its loop and lease, the order of what is due, the
 * requests, cursors, set-asides, counts, state, health, metrics, settings, and its rows in the console.
 *
 * One run goes like this: `prepare`, `due`, and then for each parcel `build`, the request, and the parcel's `take`.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Setting } from '#common/config/index.ts';
import type { FeedContract } from '#contracts/admin-api/contract.ts';
import type { Applications } from '#monitor/applications/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { ScanExchange } from '#monitor/scans/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import type { AssessmentExchange } from '#monitor/vulnerabilities/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Allocations } from './allocations/index.ts';
import type { FeedItem, Round, Visit } from './round.ts';

/** A feed as the engine and the pages know it; made by `defineFeed`. */
export type Feed = FeedDeclaration<FeedItem, unknown, unknown>;

export interface FeedDeclaration<Item extends FeedItem, Request, Answer> {
  /** The key of its rows in the database and its label in metrics; it never changes. */
  readonly name: string;
  /** Its name on pages and in problems, such as `Minute traffic`. */
  readonly title: string;
  /** The name of its loop and of the loop's lease. */
  readonly loop: string;
  /** What the loop does, for people: a verb in the third person. */
  readonly purpose: string;
  /** Permission, capabilities and their version, path, schemas. */
  readonly contract: FeedContract;
  /** What an item is: an allocation generation, or a record of the feed's own. */
  readonly items: 'allocations' | 'records';
  readonly batch: BatchBounds;
  /** Its settings: whether `serve` runs the loop, and the seconds between two runs. */
  readonly cadence: { readonly isOn: Setting<boolean>; readonly seconds: Setting<number> };
  /** Every outcome of a visit, and what it means. */
  readonly outcomes: Readonly<Record<string, OutcomeMeaning>>;
  /** What it counts beside `visited`, `failed`, `set_aside` and the outcomes. */
  readonly counts?: readonly string[];
  /** What one observation is called, such as `minute`, and how many seconds it lasts; 0 for a moment. */
  readonly observation: { readonly noun: string; readonly seconds: number };
  /** Makes the working part; it may keep in memory what can be forgotten. */
  create(sources: FeedSources): FeedWork<Item, Request, Answer>;
}

export interface BatchBounds {
  /** Items of one tick. */
  readonly itemsPerTick: number;
  /** Items of one request. */
  readonly itemsPerRequest: number;
  /** Requests that are under way at the same time, after a first one alone. */
  readonly requestsAtOnce: number;
}

/**
 * `acknowledged`: operations has what was sent. `held_back`: the item is shown as one that does not get through.
 * `nothing`: neither, such as an item without data.
 */
export type OutcomeMeaning = 'acknowledged' | 'held_back' | 'nothing';

/** What a feed may read; a feature that a new feed needs is added here and in the monitor's composition. */
export interface FeedSources {
  db: () => Queryable;
  clock: Clock;
  allocations: Allocations;
  sites: Pick<Sites, 'listClusters'>;
  traffic: Pick<Traffic, 'readAddressesMinutes' | 'listCaptures' | 'listSpeakers'>;
  applications: Pick<Applications, 'readAddressesApplications'>;
  live: Pick<Live, 'listWindows'>;
  incidents: Pick<Incidents, 'listDeliverable' | 'noteDelivered' | 'readAttackPeriods'>;
  scans: ScanExchange;
  vulnerabilities: AssessmentExchange;
}

export interface FeedWork<Item extends FeedItem, Request, Answer> {
  /** Brings up to date what `due` reads, such as the targets. */
  prepare?(round: Round): Promise<void>;
  /** The items that waited longest, at most `round.limit`; fewer than that say that no other one is due. */
  due(round: Round): Promise<{ items: readonly Item[]; counts?: Readonly<Record<string, number>> }>;
  /** Items of one request have the same group, such as a site; absent: all of them have. */
  groupOf?(item: Item): string;
  /** The request for these items, at most `itemsPerRequest` of them. */
  build(items: readonly Item[], round: Round): Promise<Parcel<Request, Answer>>;
  /** Called with visits in the transaction that writes their cursors. */
  settle?(trx: Queryable, visits: readonly Visit[]): Promise<void>;
}

export interface Parcel<Request, Answer> {
  /** Null: there is nothing to send. */
  readonly request: Request | null;
  /** Visits of items that need no request. */
  readonly visits: readonly Visit[];
  /**
   * One visit for each item in the request; visits of other items, a second one or a missing one fail the request as
   * `malformed`.
   */
  take(answer: Answer): Visit[];
  /**
   * Visits after a refusal that named fields; an empty list when they say nothing to the feed. Then an item alone has
   * failed, and several are sent again in two halves.
   */
  takeRefusal?(fields: readonly string[]): Visit[];
}

/** Declares a feed whose item, request and answer have types of their own. */
export function defineFeed<Item extends FeedItem, Request, Answer>(
  declaration: FeedDeclaration<Item, Request, Answer>,
): Feed {
  return declaration;
}
