/** What an explorer shows, as its URL says it, and the URLs of views that differ in one thing. */
import { type Sort, withQuery } from '#service-kit/pages/index.ts';
import { type Dimension, dimensions, dimensionsOfWord, dimensionTable, filterOf } from './dimensions.ts';
import {
  type Filter,
  type FilterBox,
  parseFilters,
  printFilters,
  type TextFault,
  uniteFilters,
} from './filter-text.ts';

export interface ExploreView extends Omit<Question, 'by'> {
  /** Path and query of the page. */
  url: string;
  /** As it was typed. */
  typed: string;
  faults: readonly TextFault[];
  /** Null: one line for each direction. */
  by: Dimension | null;
  /** Dimensions of the two further tables. */
  tables: readonly Dimension[];
  /** In what order the tables stand. */
  sorts: Readonly<Partial<Record<Dimension, Sort>>>;
  shape: 'stacked' | 'lines';
  tab: 'time' | 'flows';
}

/** The values of a URL that make a view, in one order; the last ones are what views had before each table had its own order. */
const viewValues: readonly string[] = [
  ...['q', 'range', 'from', 'to', 'by', 'tables', 'step', 'measure', 'top', 'compare', 'shape', 'tab'],
  ...dimensions.flatMap((one) => Object.values(sortNames(one))),
  ...[1, 2, 3].flatMap((place) => [`sort${place}`, `dir${place}`]),
];

/** The values of a URL's query that make a view, in one order. */
export function viewQueryOf(query: string): string {
  const given = new URLSearchParams(query);
  const values = viewValues.flatMap((name) => {
    const value = given.get(name);
    return value === null || value === '' ? [] : [[name, value] as [string, string]];
  });
  return new URLSearchParams(values).toString();
}

/** Values of a URL that belong to one answer of the page, not to the view. */
const passing = { format: undefined, table: undefined, saved: undefined, stopped: undefined };
/** Columns that tables are ordered by. */
const sortKeys = ['name', 'in', 'out', 'packets', 'share', 'change', 'last', 'p95'];
/** The largest first. */
const defaultSort: Sort = { by: 'share', direction: 'desc' };

/**
 * Reads a view out of the values of a URL; what can't be read has its default and a fault. `preferred`: what these filters are
 * grouped by where the URL does not say it, the first that is not one value already.
 */
export function readView(
  box: ExplorerBox,
  url: string,
  values: UrlValues,
  preferred: (question: Question) => readonly Dimension[],
): ExploreView {
  const reader = readUrl(values);
  const question = readQuestion(reader, box);
  const free = preferred(question).filter(
    (one) => box.groups.includes(one) && !isSingle(question.filters, one),
  );
  const by = question.by === null ? null : (question.by?.[0] ?? free[0] ?? null);
  const asked = (reader.text('tables') ?? '').split(',').flatMap((name) => groupOf(name, box) ?? []);
  const tables = [...asked, ...free]
    .filter((one, index, all) => one !== by && all.indexOf(one) === index)
    .slice(0, 2);
  const shown = by === null ? tables : [by, ...tables];
  return {
    ...question,
    ...{ by, tables, faults: reader.faults },
    url: withQuery(url, passing),
    typed: typeof values.q === 'string' ? values.q : printFilters(question.filters),
    sorts: Object.fromEntries(shown.map((one, index) => [one, sortOf(values, one, index + 1)])),
    shape: values.shape === 'lines' ? 'lines' : 'stacked',
    tab: values.tab === 'flows' ? 'flows' : 'time',
  };
}

/** Names of a table's order in the URL. */
export function sortNames(dimension: Dimension) {
  return { by: `${dimension}_sort`, direction: `${dimension}_direction` };
}

function sortOf(values: UrlValues, dimension: Dimension, place: number): Sort {
  const names = sortNames(dimension);
  const isNew = values[names.by] !== undefined;
  const [by, direction] = isNew
    ? [values[names.by], values[names.direction]]
    : [values[`sort${place}`], values[`dir${place}`]];
  const key = by === 'total' ? 'share' : sortKeys.find((one) => one === by);
  return key === undefined ? defaultSort : { by: key, direction: direction === 'asc' ? 'asc' : 'desc' };
}

/** True where the filters leave one value: a server is of one customer, on one node. */
export function isSingle(filters: readonly Filter[], dimension: Dimension): boolean {
  const has = (name: string | undefined) =>
    filters.some((one) => one.dimension === name && one.is && one.values.length === 1);
  return has(dimension) || has(dimensionTable[dimension].follows);
}

/** The view with these filters; the chart then groups by what is not one value yet. */
function withFilters(view: Pick<ExploreView, 'url' | 'by'>, filters: readonly Filter[]): string {
  const isGroupedByOne = view.by !== null && isSingle(uniteFilters(filters), view.by);
  return withQuery(view.url, {
    q: printFilters(filters) || undefined,
    ...(isGroupedByOne && { by: undefined }),
  });
}

/** The view of this value alone. Others of its dimension are left out, because the value is one of them. */
export function onlyHref(view: ExploreView, of: Dimension, value: string): string {
  const dimension = filterOf(of);
  const others = view.filters.filter((one) => one.dimension !== dimension || !one.is);
  return withFilters(view, [...others, { dimension, is: true, values: [value] }]);
}

/** The view without this value. */
export function withoutHref(view: ExploreView, of: Dimension, value: string): string {
  return withFilters(view, [...view.filters, { dimension: filterOf(of), is: false, values: [value] }]);
}

/** The view without one value of a filter. */
export function removeHref(view: ExploreView, filter: Filter, value: string): string {
  const values = filter.values.filter((one) => one !== value);
  return withFilters(
    view,
    view.filters.map((one) => (one === filter ? { ...one, values } : one)),
  );
}

/** The view with the opposite of a filter. */
export function negateHref(view: ExploreView, filter: Filter): string {
  const others = view.filters.filter((one) => one !== filter);
  return withFilters(view, [...others, { ...filter, is: !filter.is }]);
}

/** An explorer with these values as filters, from another page. */
export function exploreHref(
  path: string,
  filters: Readonly<Partial<Record<Dimension, string>>>,
  values: Readonly<Record<string, string | undefined>> = {},
): string {
  const all = Object.entries(filters).map(([dimension, value]) => ({
    ...{ dimension: dimension as Dimension, is: true, values: [value] },
  }));
  return withQuery(path, { q: printFilters(all) || undefined, ...values });
}

/** Why there is nothing to show, and what to do. */
export const nothingIn = ({ filters }: Pick<ExploreView, 'filters'>): string =>
  filters.length === 0
    ? 'No traffic was observed in this range. Choose a longer one.'
    : 'No traffic of this range passes the filters. Remove a filter or choose a longer range.';

// What is asked of an explorer, as the values of a URL: `?q=app:github.com&by=server&measure=packets&top=20&compare=previous`.
//
// What is left out has its default, so that the shortest URL is a whole question; what can't be read has it too, and a fault.

/** Values of a parsed URL; a repeated one is a list. */
export type UrlValues = Readonly<Record<string, unknown>>;
export type Parsed<T> = { value: T } | { fault: string };

export const measures = ['bytes', 'packets'] as const;
export type Measure = (typeof measures)[number];

/** What can be asked in one place. */
export interface ExplorerBox extends FilterBox {
  /** What it can be grouped by, in the order in which it is offered. */
  groups: readonly Dimension[];
  /** The most rows that can be asked for. */
  topMax: number;
}

export const topDefault = 10;

export interface Question {
  filters: readonly Filter[];
  /** Null: by nothing, which draws in and out; undefined: the page chooses. */
  by: readonly Dimension[] | null | undefined;
  measure: Measure;
  top: number;
  /** `previous`: also the same length of time before the range. */
  compare: 'previous' | null;
}

export type UrlReader = ReturnType<typeof readUrl>;

export function readUrl(values: UrlValues) {
  const faults: TextFault[] = [];
  /** The text of a value; null: it is left out. */
  const text = (name: string): string | null => {
    const value = values[name];
    const joined = Array.isArray(value) ? value.join(name === 'q' ? ' ' : ',') : value;
    return typeof joined === 'string' && joined.trim() !== '' ? joined.trim() : null;
  };
  return {
    text,
    faults,
    /** The value that a text means; with a fault and the fallback where it means none. */
    take<T>(name: string, fallback: T, parse: (text: string) => Parsed<T>): T {
      const given = text(name);
      if (given === null) return fallback;
      const parsed = parse(given);
      if ('value' in parsed) return parsed.value;
      faults.push({ text: `${name}=${given}`.slice(0, 80), message: parsed.fault });
      return fallback;
    },
  };
}

/** `byMax`: dimensions that may be grouped by together. */
export function readQuestion(url: UrlReader, box: ExplorerBox, byMax = 1): Question {
  const { filters, faults } = parseFilters(url.text('q') ?? '', box);
  url.faults.push(...faults);
  return {
    filters,
    by: url.take<Question['by']>('by', undefined, (text) => parseBy(text, box, byMax)),
    measure: url.take<Measure>('measure', 'bytes', (text) => oneOf(text, measures)),
    top: url.take('top', topDefault, (text) => parseTop(text, box.topMax)),
    compare: url.take<Question['compare']>('compare', null, (text) =>
      text === 'previous' ? { value: text } : { fault: 'Use previous, or leave it out.' },
    ),
  };
}

export function oneOf<T extends string>(text: string, values: readonly T[]): Parsed<T> {
  const value = values.find((one) => one === text);
  if (value !== undefined) return { value };
  return { fault: `Use ${values.join(values.length === 2 ? ' or ' : ', ')}.` };
}

/** A dimension by its name or one of its words; null: nothing of this name is grouped by here. */
export const groupOf = (name: string, { groups }: Pick<ExplorerBox, 'groups'>): Dimension | null =>
  groups.find((one) => one === name.toLowerCase()) ??
  dimensionsOfWord(name).find((one) => groups.includes(one) && !dimensionTable[one].filteredBy) ??
  null;

function parseBy(text: string, box: ExplorerBox, most: number): Parsed<readonly Dimension[] | null> {
  const names = text.split(',').map((one) => one.trim());
  // Where connections have no direction, it is in and out.
  const isOfSides = text === 'direction' && !box.groups.includes('direction');
  if (text === 'none' || isOfSides) return { value: null };
  const by = names.map((name) => groupOf(name, box));
  const unknown = names.find((_, i) => by[i] === null);
  if (unknown !== undefined) return { fault: `There is no ${unknown}. Use ${box.groups.join(', ')}.` };
  if (by.length > most) return { fault: `Group by at most ${most} dimension${most === 1 ? '' : 's'}.` };
  if (new Set(by).size < by.length) return { fault: 'Group by two different dimensions.' };
  return { value: by as Dimension[] };
}

function parseTop(text: string, most: number): Parsed<number> {
  const top = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return top >= 1 && top <= most ? { value: top } : { fault: `Use a number from 1 to ${most}.` };
}
