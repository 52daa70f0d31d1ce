/** A query of traffic and its answer: what the explorer page, the read API and saved views exchange. */
import { keptMs } from '#contracts/retention.ts';
import type * as kit from '#service-kit/explorer/index.ts';
import {
  oneOf,
  type Parsed,
  printFilters,
  readQuestion,
  readUrl,
  topDefault,
  type UrlReader,
  type UrlValues,
} from '#service-kit/explorer/index.ts';

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

// A query as the values of a URL: `?q=app:github.com&by=server,peer&range=24h&step=600&measure=packets&top=20&compare=previous`.
//
// The range is named as on every chart: `range=6h`, any number of minutes, hours or days, or `range=custom` with `from` and `to`
// in UTC. What is left out has its default, so that the shortest URL is a whole query.

const unitSeconds = { m: 60, h: 3600, d: 86_400 } as const;

/** Reads a URL's values; what could not be read is in `faults`. */
export function parseQueryUrl(siteId: number, values: UrlValues) {
  const url = readUrl(values);
  const { by, ...question } = readQuestion(url, queryBox, byMax);
  const query: Query = {
    ...{ siteId, ...question, ...readTimes(url) },
    by: (by ?? []) as readonly Dimension[],
    order: url.take<Order>('order', 'size', (text) => oneOf(text, orders)),
  };
  return { query, faults: url.faults };
}

/** The range and its steps. */
export const readTimes = (url: UrlReader): Pick<Query, 'range' | 'step'> => ({
  range: readRange(url),
  step: url.take<QueryStep>('step', 'auto', parseStep),
});

/** The values that `parseQueryUrl` reads as this query; the defaults are left out. */
export function printQueryUrl(query: Query): Record<string, string> {
  const { range, by, step, measure, order, top, compare } = query;
  const text = printFilters(query.filters);
  return {
    ...(text !== '' && { q: text }),
    ...printRange(range),
    ...(by.length > 0 && { by: by.join(',') }),
    ...(step !== 'auto' && { step: step === null ? 'none' : String(step) }),
    ...(measure !== 'bytes' && { measure }),
    ...(order !== 'size' && { order }),
    ...(top !== topDefault && { top: String(top) }),
    ...(compare !== null && { compare }),
  };
}

/** Whole minutes, so that a step is never shorter than what was counted. */
function parseStep(text: string): Parsed<QueryStep> {
  if (text === 'auto') return { value: 'auto' };
  if (text === 'none') return { value: null };
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds >= 60 && seconds <= 86_400 && 86_400 % seconds === 0 && seconds % 60 === 0)
    return { value: seconds };
  return {
    fault: 'Use auto, none, or whole minutes in seconds that divide a day, such as 60, 600, 3600 or 86400.',
  };
}

function readRange({ text, faults }: UrlReader): QueryRange {
  const fallback = { lastSeconds: lastSecondsDefault };
  const [name, fromText, toText] = [text('range'), text('from'), text('to')];
  const refuse = (given: string, message: string) => {
    faults.push({ text: given.slice(0, 80), message });
    return fallback;
  };
  if (name !== null && name !== 'custom') {
    const last = /^([1-9]\d{0,4})([mhd])$/.exec(name);
    const seconds = last ? Number(last[1]) * unitSeconds[last[2] as keyof typeof unitSeconds] : Number.NaN;
    return seconds <= rangeSecondsMax
      ? { lastSeconds: seconds }
      : refuse(
          `range=${name}`,
          `Use a range such as 15m, 6h or 30d, of at most ${rangeSecondsMax / 86_400} days.`,
        );
  }
  if (fromText === null && toText === null)
    return name === null
      ? fallback
      : refuse('range=custom', 'Give from and to in UTC, such as 2026-11-21T10:00Z.');
  const [from, to] = [readTime(fromText), readTime(toText)];
  if (from === null || to === null)
    return refuse(
      `from=${fromText ?? ''} to=${toText ?? ''}`,
      'Give from and to in UTC, such as 2026-11-21T10:00Z.',
    );
  const whole = { from: Math.floor(from / 60) * 60, to: Math.ceil(to / 60) * 60 };
  if (whole.to <= whole.from) return refuse(`to=${toText}`, 'The end must be after the start.');
  if (whole.to - whole.from > rangeSecondsMax)
    return refuse(`from=${fromText}`, `A range covers at most ${rangeSecondsMax / 86_400} days.`);
  return whole;
}

/** Unix seconds of a time in UTC, or of a number of milliseconds, as Grafana sends it. */
function readTime(text: string | null): number | null {
  if (text === null) return null;
  if (/^\d{12,14}$/.test(text)) return Number(text) / 1000;
  if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z?$/.test(text)) return null;
  const ms = Date.parse(`${text.replace(' ', 'T').replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? null : ms / 1000;
}

function printRange(range: QueryRange): Record<string, string> {
  if ('from' in range) {
    const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
    return { range: 'custom', from: utc(range.from), to: utc(range.to) };
  }
  const { lastSeconds } = range;
  if (lastSeconds === lastSecondsDefault) return {};
  const [unit, seconds] = Object.entries(unitSeconds)
    .toReversed()
    .find(([, seconds]) => lastSeconds % seconds === 0)!;
  return { range: `${lastSeconds / seconds}${unit}` };
}
