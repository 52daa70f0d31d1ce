/** A query of traffic and its answer: what the explorer page, the read API and saved views exchange. */
import { keptMs } from '#contracts/retention.ts';
import type { Dimension as AnyDimension, ExplorerBox, Filter, Measure } from '#service-kit/explorer/index.ts';

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
] as const satisfies readonly AnyDimension[];
export type Dimension = (typeof dimensions)[number];

export const topMax = 1000;
/** What can be asked of a site. */
export const queryBox: ExplorerBox = {
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
  filters: readonly Filter[];
  /** At most two. */
  by: readonly Dimension[];
  step: QueryStep;
  measure: Measure;
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

/** Bytes to and from the local addresses, or packets both ways; null: not known. */
export interface Amount {
  inBytes: number;
  outBytes: number;
  /** Both directions together; null where the measure is bytes. */
  packets: number | null;
}

/** What stands in one column of a row. */
export interface Value {
  /** In the text form of the dimension, so that it can be filtered by; null: unknown, or none. */
  value: string | null;
  /** For people: a name instead of an id. */
  label: string;
}

export interface Row {
  /** One for each dimension of `by`. */
  key: readonly Value[];
  amount: Amount;
  /** Of the total of the query's measure; 0 where there is no traffic at all. */
  share: number;
  /** Null: not asked for, or no capture listened. An amount of zeros: nothing in that period. */
  previous: Amount | null;
  /** Of the query's measure, bit/s or packets/s; one for each step, null in a gap. Empty without steps. */
  rates: readonly (number | null)[];
}

/** The sum of everything that is not among the rows. */
export interface Rest {
  /** Groups that are not shown. */
  groups: number;
  amount: Amount;
  share: number;
  previous: Amount | null;
  rates: readonly (number | null)[];
}

/** Which facts the numbers were read from. */
export const sources = ['addresses', 'applications', 'pairs'] as const;
/**
 * `addresses`: exact counters of local addresses; `applications`: named usage, each minute and direction at the vantage point
 * that owns it; `pairs`: connections between exact addresses, kept for 24 hours.
 */
export type Source = (typeof sources)[number];

/** What the facts were read as; each gives the same numbers, at another price. */
export type Grain = 'minutes' | 'tens' | 'hours' | 'days';

/** A part of the query that has no answer for its range. */
export interface Limit {
  code:
    | `peers_kept_${string}`
    | 'no_such_value'
    | `facts_kept_${string}`
    | 'no_network_file'
    | 'networks_of_largest_peers'
    | 'previous_not_observed'
    | 'packets_both_ways';
  /** The dimension that it is about; null: the range. */
  dimension: Dimension | null;
  /** What is missing and what to do about it. */
  message: string;
}

export interface Answer {
  /** The range that was read, seconds; of `lastSeconds` the minutes up to now. */
  from: number;
  to: number;
  stepSeconds: number | null;
  measure: Measure;
  by: readonly Dimension[];
  source: Source;
  grains: readonly Grain[];
  /** Start of the newest minute with facts of the site, unix milliseconds; null: none yet. */
  newestMs: number | null;
  /** By the query's order, largest first. */
  rows: readonly Row[];
  rest: Rest | null;
  total: Amount;
  /** The part of the total that the sensors' own port scans are, in the measure; null where it is not known, as of one direction. */
  ownScans: number | null;
  /** Of the period before; null where it was not asked for, or no capture listened. */
  previousTotal: Amount | null;
  /** Starts of the steps, unix milliseconds; empty without steps. */
  timesMs: readonly number[];
  /**
   * Of everything, for each step: means over the minutes in which a capture that could see it listened; null in a step
   * without such a minute, which is a gap and no zero.
   */
  series: {
    inBps: readonly (number | null)[];
    /** Null in each step where a filter leaves this direction out, and so is the other. */
    outBps: readonly (number | null)[];
    /** Empty where the measure is bytes. */
    pps: readonly (number | null)[];
    /** Observed minutes of each step. */
    minutes: readonly number[];
    /** Rates of the measure in the period before, step by step; empty where it was not asked for, or no capture listened. */
    previous: readonly (number | null)[];
    /** The same of each direction, bit/s; empty where the measure is packets as well. */
    previousInBps: readonly (number | null)[];
    previousOutBps: readonly (number | null)[];
  };
  /** 95th percentile of the steps' rates of everything, of both directions together; null without steps. */
  percentile95: number | null;
  /** The same of each direction; null without steps, or where the measure is packets. */
  percentile95In: number | null;
  percentile95Out: number | null;
  limits: readonly Limit[];
}
