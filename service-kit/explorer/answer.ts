/** The answer to a question of traffic, the same from every program: rows of a dimension, steps, totals, and what is missing. */
import type { Sort } from '#service-kit/pages/index.ts';
import type { Dimension } from './dimensions.ts';
import type { Measure } from './view.ts';

/** Bytes to and from the local addresses, or packets both ways; null: not known. */
export interface Amount {
  inBytes: number;
  outBytes: number;
  /** Both directions together; null where the measure is bytes, and where they are not known. */
  packets: number | null;
}

/** What stands in one column of a row. */
export interface Value {
  /** In the spelling of the dimension, so that it can be filtered by; null: unknown, or none. */
  value: string | null;
  /** For people: a name instead of an id. */
  label: string;
}

/** What is known beside the amount of a row; null: not known, or of no such thing. */
export interface RowDetails {
  /** The port of a `service`. */
  service: string | null;
  serverId: number | null;
  customerId: number | null;
  /** When an application was last sent. */
  lastSentMs: number | null;
  /** 95th percentiles of its observed minutes, bit/s. */
  percentile95In: number | null;
  percentile95Out: number | null;
}

/** What is not among the rows: an amount without a value to filter by. */
export interface Remainder {
  amount: Amount;
  /** Of the total in the measure; null where it is not known, and 0 where there is no traffic at all. */
  share: number | null;
  /** Of the period before. Null: not asked for, or not observed. Zeros: nothing in that period. */
  previous: Amount | null;
  /** Of the measure, bit/s or packets/s; one for each time, null in a gap. Empty without steps. */
  rates: readonly (number | null)[];
}

export interface Row extends Remainder {
  /** One for each dimension of `by`. */
  key: readonly Value[];
  details?: RowDetails;
}

/** The sum of everything that is not among the rows. */
export interface Rest extends Remainder {
  /** Groups that are not shown. */
  groups: number;
}

/** A part of the total that has no value of the dimension, such as our own port scans. */
export interface Apart extends Remainder {
  label: string;
}

/** A part of the question that has no answer. */
export interface Limit<Code extends string = string> {
  code: Code;
  /** The dimension that it is about; null: the range. */
  dimension: Dimension | null;
  title?: string;
  /** What is missing and what to do about it. */
  message: string;
}

export interface Answer {
  /** The range that was read, seconds. */
  from: number;
  to: number;
  stepSeconds: number | null;
  measure: Measure;
  by: readonly Dimension[];
  /** The largest first, or in the order that was asked for. */
  rows: readonly Row[];
  rest: Rest | null;
  /** Beside rows and rest. */
  apart: readonly Apart[];
  total: Amount;
  /** Of the period before; null where it was not asked for, or not observed. */
  previousTotal: Amount | null;
  /** Starts of the steps, unix milliseconds; empty without steps. */
  timesMs: readonly number[];
  /**
   * Of everything, for each step: means over the observed minutes; null in a step without such a minute, which is a gap and no
   * zero, and where a filter leaves the direction out.
   */
  series: {
    inBps: readonly (number | null)[];
    outBps: readonly (number | null)[];
    /** Empty where the measure is bytes. */
    pps: readonly (number | null)[];
    /** Observed minutes of each step. */
    minutes: readonly number[];
    /** Rates of the measure in the period before, step by step; empty where it was not asked for, or not observed. */
    previous: readonly (number | null)[];
    /** The same of each direction, bit/s; empty where the measure is packets as well. */
    previousInBps: readonly (number | null)[];
    previousOutBps: readonly (number | null)[];
  };
  /** 95th percentile of the rates of everything in the measure, both directions together; null without steps. */
  percentile95: number | null;
  /** The same of each direction; null without steps, or where the measure is packets. */
  percentile95In: number | null;
  percentile95Out: number | null;
  /** Seconds of the means that the percentiles are of; null without steps. */
  percentileSeconds: number | null;
  limits: readonly Limit[];
}

/** In place of steps in an answer that has none. */
export const withoutSteps: Pick<
  Answer,
  'timesMs' | 'series' | 'percentile95' | 'percentile95In' | 'percentile95Out' | 'percentileSeconds'
> = {
  timesMs: [],
  series: {
    ...{ inBps: [], outBps: [], pps: [], minutes: [], previous: [], previousInBps: [], previousOutBps: [] },
  },
  ...{ percentile95: null, percentile95In: null, percentile95Out: null, percentileSeconds: null },
};

/** Of the measure; null where packets are not known. */
export const sizeOf = (amount: Amount, measure: Measure): number | null =>
  measure === 'packets' ? amount.packets : amount.inBytes + amount.outBytes;

/** All of them together; packets are those that are known. */
export function sumOf(amounts: Iterable<Amount>): Amount {
  const sum: Amount = { inBytes: 0, outBytes: 0, packets: null };
  for (const { inBytes, outBytes, packets } of amounts) {
    sum.inBytes += inBytes;
    sum.outBytes += outBytes;
    if (packets !== null) sum.packets = (sum.packets ?? 0) + packets;
  }
  return sum;
}

/** What parts leave of a whole, never less than nothing. */
export function minus(whole: Amount, ...parts: readonly Amount[]): Amount {
  const known = sumOf(parts);
  const left = (all: number, part: number | null) => Math.max(0, all - (part ?? 0));
  return {
    inBytes: left(whole.inBytes, known.inBytes),
    outBytes: left(whole.outBytes, known.outBytes),
    packets: whole.packets === null ? null : left(whole.packets, known.packets),
  };
}

/** The rows of an answer, what they leave and what is beside them, with their shares of the total. */
export function shareOut(
  measure: Measure,
  total: Amount,
  parts: {
    rows: readonly Omit<Row, 'share'>[];
    rest: Omit<Rest, 'share'> | null;
    apart: readonly Omit<Apart, 'share'>[];
  },
): Pick<Answer, 'measure' | 'total' | 'rows' | 'rest' | 'apart'> {
  const all = sizeOf(total, measure) ?? 0;
  const withShare = <T extends { amount: Amount }>(one: T): T & { share: number | null } => {
    const size = sizeOf(one.amount, measure);
    return { ...one, share: size === null ? null : all > 0 ? size / all : 0 };
  };
  const { rows, rest, apart } = parts;
  return {
    ...{ measure, total, rows: rows.map(withShare), apart: apart.map(withShare) },
    rest: rest && withShare(rest),
  };
}

/** Everything over time, step by step; null in a gap. */
export interface Course {
  inBps: readonly (number | null)[];
  outBps: readonly (number | null)[];
  /** Of the measure, both directions together. */
  rates: readonly (number | null)[];
  /** Observed minutes of each step. */
  minutes: readonly number[];
}

/** `before`: the period before, as many steps of it; null: not asked for, or not observed. */
export function seriesOf(measure: Measure, now: Course, before: Course | null): Answer['series'] {
  const isPackets = measure === 'packets';
  return {
    ...{ inBps: now.inBps, outBps: now.outBps, pps: isPackets ? now.rates : [], minutes: now.minutes },
    previous: before?.rates ?? [],
    previousInBps: isPackets ? [] : (before?.inBps ?? []),
    previousOutBps: isPackets ? [] : (before?.outBps ?? []),
  };
}

/** Of both directions together, in the measure, step by step; null in a gap. */
export const wholeRates = (
  measure: Measure,
  { inBps, outBps, pps }: Pick<Answer['series'], 'inBps' | 'outBps' | 'pps'>,
): readonly (number | null)[] =>
  measure === 'packets'
    ? pps
    : inBps.map((inbound, at) => {
        const outbound = outBps[at] ?? null;
        return inbound === null && outbound === null ? null : (inbound ?? 0) + (outbound ?? 0);
      });

/** What the rows leave of everything, step by step; null in a gap. */
export function restRates(
  all: readonly (number | null)[],
  rows: readonly Pick<Row, 'rates'>[],
): (number | null)[] {
  return all.map((rate, at) =>
    rate === null
      ? null
      : // Sums of fractions may leave a trace of nothing.
        Math.max(
          0,
          rows.reduce((left, row) => left - (row.rates[at] ?? 0), rate),
        ),
  );
}

/** The nearest rank of what is known; null of nothing. */
export function percentile95(rates: readonly (number | null)[]): number | null {
  const known = rates.filter((rate) => rate !== null).sort((a, b) => a - b);
  return known.length === 0 ? null : known[Math.ceil(known.length * 0.95) - 1]!;
}

/** What rows are put in order by. */
export interface Ordered {
  amount: Amount;
  previous: Amount | null;
  details?: RowDetails | null | undefined;
}

/** How large a row is by a column of its table; null: not known. */
function figureOf({ amount, previous, details }: Ordered, column: string, measure: Measure): number | null {
  switch (column) {
    case 'in':
      return amount.inBytes;
    case 'out':
      return amount.outBytes;
    case 'packets':
      return amount.packets;
    case 'change':
      return changeOf(sizeOf(amount, measure), previous && sizeOf(previous, measure));
    case 'last':
      return details?.lastSentMs ?? null;
    case 'p95':
      return details?.percentile95Out ?? null;
    default:
      return sizeOf(amount, measure);
  }
}

/** How many times as much as before; what is new comes before everything, what was and is nothing is not known. */
const changeOf = (now: number | null, before: number | null): number | null =>
  now === null || before === null || (before === 0 && now === 0) ? null : now / before;

// Made once: a comparison by the language alone looks for its rules each time.
const byLanguage = new Intl.Collator('en', { numeric: true });
export const compareNames = (a: string, b: string): number => byLanguage.compare(a, b);

/** The order of rows by a column; rows of which nothing is known are the last, and equal ones are equal. */
export function orderOf<T extends Ordered>(
  { by, direction }: Sort,
  measure: Measure,
  nameOf: (row: T) => string,
): (a: T, b: T) => number {
  const sign = direction === 'asc' ? 1 : -1;
  if (by === 'name') return (a, b) => sign * compareNames(nameOf(a), nameOf(b));
  return (a, b) => {
    const [x, y] = [figureOf(a, by, measure), figureOf(b, by, measure)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  };
}
