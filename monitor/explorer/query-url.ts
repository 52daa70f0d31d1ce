/**
 * A query as the values of a URL: `?q=app:github.com&by=server,peer&range=24h&step=600&measure=packets&top=20&compare=previous`.
 *
 * The range is named as on every chart: `range=6h`, any number of minutes, hours or days, or `range=custom` with `from` and `to`
 * in UTC. What is left out has its default, so that the shortest URL is a whole query.
 */

import {
  byMax,
  type Dimension,
  dimensions,
  lastSecondsDefault,
  type Measure,
  measures,
  type Order,
  orders,
  type Query,
  type QueryRange,
  type QueryStep,
  rangeSecondsMax,
  topDefault,
  topMax,
} from './query.ts';
import { parseQueryText, printQueryText, type TextFault } from './query-text.ts';
import { parseDimension } from './values.ts';

/** Values of a parsed URL; a repeated one is a list. */
export type UrlValues = Readonly<Record<string, unknown>>;

export interface ParsedQuery {
  /** With the default in place of what could not be read. */
  query: Query;
  faults: TextFault[];
}

const unitSeconds = { m: 60, h: 3600, d: 86_400 } as const;

/** Reads a URL's values; what could not be read is in `faults`. */
export function parseQueryUrl(siteId: number, values: UrlValues): ParsedQuery {
  const faults: TextFault[] = [];
  const read = (name: string): string | null => {
    const value = values[name];
    const text = Array.isArray(value) ? value.join(name === 'q' ? ' ' : ',') : value;
    return typeof text === 'string' && text.trim() !== '' ? text.trim() : null;
  };
  const taken = <T>(name: string, fallback: T, parse: (text: string) => Parsed<T>): T => {
    const text = read(name);
    if (text === null) return fallback;
    const parsed = parse(text);
    if ('value' in parsed) return parsed.value;
    faults.push({ text: `${name}=${text}`.slice(0, 80), message: parsed.fault });
    return fallback;
  };
  const text = parseQueryText(read('q') ?? '');
  faults.push(...text.faults);
  const query: Query = {
    siteId,
    range: readRange(read, faults),
    filters: text.filters,
    by: taken('by', [], parseBy),
    step: taken('step', 'auto', parseStep),
    measure: taken('measure', 'bytes', parseMeasure),
    order: taken('order', 'size', parseOrder),
    top: taken('top', topDefault, parseTop),
    compare: taken('compare', null, parseCompare),
  };
  return { query, faults };
}

/** The values that `parseQueryUrl` reads as this query; the defaults are left out. */
export function printQueryUrl(query: Query): Record<string, string> {
  const { range, by, step, measure, order, top, compare } = query;
  const text = printQueryText(query.filters);
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

type Parsed<T> = { value: T } | { fault: string };

function parseBy(text: string): Parsed<readonly Dimension[]> {
  const names = text.split(',').map((one) => one.trim());
  const by = names.map((name) => parseDimension(name, dimensions));
  const unknown = names.find((_, i) => by[i] === null);
  if (unknown !== undefined) return { fault: `There is no ${unknown}. Use ${dimensions.join(', ')}.` };
  if (by.length > byMax) return { fault: `Group by at most ${byMax} dimensions.` };
  if (new Set(by).size < by.length) return { fault: 'Group by two different dimensions.' };
  return { value: by as Dimension[] };
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

function parseMeasure(text: string): Parsed<Measure> {
  const measure = measures.find((one) => one === text);
  return measure ? { value: measure } : { fault: `Use ${measures.join(' or ')}.` };
}

function parseOrder(text: string): Parsed<Order> {
  const order = orders.find((one) => one === text);
  return order ? { value: order } : { fault: `Use ${orders.join(', ')}.` };
}

function parseTop(text: string): Parsed<number> {
  const top = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return top >= 1 && top <= topMax ? { value: top } : { fault: `Use a number from 1 to ${topMax}.` };
}

const parseCompare = (text: string): Parsed<Query['compare']> =>
  text === 'previous' ? { value: text } : { fault: 'Use previous, or leave it out.' };

function readRange(read: (name: string) => string | null, faults: TextFault[]): QueryRange {
  const fallback = { lastSeconds: lastSecondsDefault };
  const [name, fromText, toText] = [read('range'), read('from'), read('to')];
  const refuse = (text: string, message: string) => {
    faults.push({ text: text.slice(0, 80), message });
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
