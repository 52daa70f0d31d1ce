/** What an explorer shows, as its URL says it, and the URLs of views that differ in one thing. */
import { type Sort, withQuery } from '#service-kit/pages/index.ts';
import { type Dimension, dimensions, dimensionTable, filterOf } from './dimensions.ts';
import { type Filter, printFilters, type TextFault, uniteFilters } from './filter-text.ts';
import {
  type ExplorerBox,
  groupOf,
  type Question,
  readQuestion,
  readUrl,
  type UrlValues,
} from './url-values.ts';

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
