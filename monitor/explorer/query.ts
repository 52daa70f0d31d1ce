/** A query of traffic and its answer: what the explorer page, the read API and saved views exchange. */
import { keptMs } from '#contracts/retention.ts';
import type * as kit from '#service-kit/explorer/index.ts';

/** What traffic can be grouped by, in the order in which they are offered. */
export const dimensions = [
  'server',
  'customer',
  'address',
  'device',
  'application',
  'peer',
  'country',
  'as',
  'port',
  'transport',
  'direction',
  'sensor',
  'scope',
] as const satisfies readonly kit.Dimension[];
export type Dimension = (typeof dimensions)[number];

export const topMax = 1000;
/** What can be asked of a site. */
export const queryBox: kit.ExplorerBox = {
  ...{ groups: dimensions, filters: [...dimensions, 'side'], hasSegments: true, topMax },
};

/** By what the rows of an answer are the largest: the measure in both directions, or bytes of one. */
export const orders = ['size', 'in', 'out'] as const;
export type Order = (typeof orders)[number];

/** The newest seconds, or from a second (inclusive) to another (exclusive), both on whole minutes. */
export type QueryRange = { lastSeconds: number } | { from: number; to: number };

/** Seconds of a step; `auto`: chosen by the range; null: no steps, sums only. */
export type QueryStep = number | 'auto' | null;

export interface Query {
  siteId: number;
  range: QueryRange;
  /** All have to match. At most one for each dimension and `is`. */
  filters: readonly kit.Filter[];
  /** At most two. */
  by: readonly Dimension[];
  step: QueryStep;
  measure: kit.Measure;
  order: Order;
  /** Rows of the answer, the largest first; the others are `rest`. */
  top: number;
  /** `previous`: also the same length of time before the range. */
  compare: 'previous' | null;
}

export const byMax = 2;
export const lastSecondsDefault = 86_400;
/** The longest range: a little longer than traffic is kept. */
export const rangeSecondsMax = keptMs('traffic') / 1000 + 8 * 86_400;
/** Steps of one answer, so that a chart stays a chart. */
export const stepsMax = 1_500;

/** Which facts the numbers were read from. */
export const sources = ['addresses', 'applications', 'pairs'] as const;
/**
 * `addresses`: exact counters of local addresses; `applications`: named usage, each minute and direction at the vantage point
 * that owns it; `pairs`: connections between exact addresses, kept for 24 hours.
 */
export type Source = (typeof sources)[number];

/** What the facts were read as; each gives the same numbers, at another price. */
export type Grain = 'minutes' | 'tens' | 'hours' | 'days';

export type LimitCode =
  | `peers_kept_${string}`
  | 'no_such_value'
  | `facts_kept_${string}`
  | 'no_network_file'
  | 'networks_of_largest_peers'
  | 'previous_not_observed'
  | 'packets_both_ways';
/** A part of the query that has no answer for its range. */
export type Limit = kit.Limit<LimitCode> & { dimension: Dimension | null };

/** Of a site, of whose traffic a minute is observed where a capture that could see it listened. */
export interface Answer extends kit.Answer {
  by: readonly Dimension[];
  source: Source;
  grains: readonly Grain[];
  /** Start of the newest minute with facts of the site, unix milliseconds; null: none yet. */
  newestMs: number | null;
  /** The part of the total that the sensors' own port scans are, in the measure; null where it is not known, as of one direction. */
  ownScans: number | null;
  limits: readonly Limit[];
}
