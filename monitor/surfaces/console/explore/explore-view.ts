/** What the explorer shows, as its URL says it, and the URLs of views that differ in one thing. */
import {
  type Dimension,
  dimensions,
  type Filter,
  type Order,
  parseQueryUrl,
  printQueryText,
  type Query,
  type TextFault,
} from '#monitor/explorer/index.ts';
import { type Sort, withQuery } from '#service-kit/pages/index.ts';

export const shapes = ['stacked', 'lines'] as const;
export type Shape = (typeof shapes)[number];

export interface ExploreView {
  siteId: number;
  /** Path and query of the page. */
  url: string;
  /** As it was typed. */
  typed: string;
  /** Of the chart and the first table. */
  query: Query;
  /** What can be grouped by here. */
  offered: readonly Dimension[];
  faults: readonly TextFault[];
  /** Null: one line for each direction. */
  by: Dimension | null;
  /** Dimensions of the two further tables. */
  tables: readonly Dimension[];
  /** In what order the tables stand. */
  sorts: Readonly<Partial<Record<Dimension, Sort>>>;
  shape: Shape;
  tab: 'time' | 'flows';
}

/** Grouped by the first of these that is not already one value. */
const preferred: readonly Dimension[] = ['application', 'server', 'peer', 'port', 'address', 'direction'];
/** The same of all traffic: remote addresses are too many to be summed each time that the page opens. */
const preferredOfAll: readonly Dimension[] = [
  'application',
  'server',
  'customer',
  'direction',
  'port',
  'peer',
];
/** One value of these leaves few remote addresses. */
const narrowing: readonly Dimension[] = ['server', 'address', 'device', 'application', 'peer'];
/** Peers are connections between exact addresses, which live for 24 hours (NET-2.2.7). */
const pairsSeconds = 86_400;
/** Values of a URL that belong to one answer of the page, not to the view. */
const passing = { format: undefined, table: undefined, saved: undefined, stopped: undefined };

/** Reads a view out of the values of a URL; what can't be read has its default and a fault. */
export function readView(
  siteId: number,
  url: string,
  values: Readonly<Record<string, unknown>>,
  offered: readonly Dimension[],
): ExploreView {
  const isTotal = values.by === 'none';
  const { query, faults } = parseQueryUrl(siteId, { ...values, ...(isTotal && { by: undefined }) });
  const isNarrow = query.filters.some((one) => one.is && narrowing.includes(one.dimension));
  const free = (isNarrow ? preferred : preferredOfAll).filter(
    (one) => !isSingle(query, one) && (one !== 'peer' || isShort(query)),
  );
  const by = isTotal ? null : (query.by[0] ?? free[0] ?? null);
  const asked = typeof values.tables === 'string' ? values.tables.split(',') : [];
  const known = dimensions.filter((one) => asked.includes(one));
  const tables = [...asked.filter((one): one is Dimension => known.includes(one as Dimension)), ...free]
    .filter((one, index, all) => one !== by && all.indexOf(one) === index)
    .slice(0, 2);
  return {
    siteId,
    url: withQuery(url, passing),
    typed: typeof values.q === 'string' ? values.q : printQueryText(query.filters),
    query: { ...query, by: by === null ? [] : [by], order: orderOf(by === null ? null : sortOf(values, by)) },
    offered,
    faults,
    by,
    tables,
    sorts: Object.fromEntries(
      [by, ...tables].flatMap((one) => (one === null ? [] : [[one, sortOf(values, one)]])),
    ),
    shape: values.shape === 'lines' ? 'lines' : 'stacked',
    tab: values.tab === 'flows' ? 'flows' : 'time',
  };
}

/** Columns that a table can be ordered by. */
export const sortKeys = ['name', 'in', 'out', 'packets', 'share', 'change'] as const;
/** The largest first. */
const defaultSort: Sort = { by: 'share', direction: 'desc' };
/** Names of a table's order in the URL. */
export const sortNames = (dimension: Dimension) => ({
  by: `${dimension}_sort`,
  direction: `${dimension}_direction`,
});

function sortOf(values: Readonly<Record<string, unknown>>, dimension: Dimension): Sort {
  const names = sortNames(dimension);
  const by = sortKeys.find((one) => one === values[names.by]);
  return by === undefined
    ? defaultSort
    : { by, direction: values[names.direction] === 'asc' ? 'asc' : 'desc' };
}

/** Of a table in this order: which values it has. The others reorder what is the largest. */
export const orderOf = (sort: Sort | null): Order =>
  sort?.by === 'in' || sort?.by === 'out' ? sort.by : 'size';

const isSingle = (query: Query, dimension: Dimension) =>
  query.filters.some((one) => one.dimension === dimension && one.is && one.values.length === 1);

const isShort = ({ range }: Query) =>
  'lastSeconds' in range ? range.lastSeconds <= pairsSeconds : range.to - range.from <= pairsSeconds;

/** The view with these filters; the chart then groups by what is not one value yet. */
function withFilters(view: ExploreView, filters: readonly Filter[]): string {
  const text = printQueryText(filters);
  const isGroupedByOne = view.by !== null && isSingle({ ...view.query, filters }, view.by);
  return withQuery(view.url, {
    q: text === '' ? undefined : text,
    ...(isGroupedByOne && { by: undefined }),
  });
}

/** The view of this value alone. Others of its dimension are left out, because the value is one of them. */
export function onlyHref(view: ExploreView, dimension: Dimension, value: string): string {
  const others = view.query.filters.filter((one) => one.dimension !== dimension || !one.is);
  return withFilters(view, [...others, { dimension, is: true, values: [value] }]);
}

/** The view without this value. */
export function withoutHref(view: ExploreView, dimension: Dimension, value: string): string {
  return withFilters(view, [...view.query.filters, { dimension, is: false, values: [value] }]);
}

/** The view without one value of a filter. */
export function removeHref(view: ExploreView, filter: Filter, value: string): string {
  return withFilters(
    view,
    replaced(
      view,
      filter,
      filter.values.filter((one) => one !== value),
    ),
  );
}

/** The view with the opposite of a filter. */
export function negateHref(view: ExploreView, filter: Filter): string {
  const others = view.query.filters.filter((one) => one !== filter);
  return withFilters(view, [...others, { ...filter, is: !filter.is }]);
}

function replaced(view: ExploreView, filter: Filter, values: readonly string[]): Filter[] {
  return view.query.filters.flatMap((one) =>
    one !== filter ? [one] : values.length === 0 ? [] : [{ ...one, values }],
  );
}

const names: Readonly<Record<Dimension, readonly [one: string, many: string]>> = {
  server: ['Server', 'Servers'],
  customer: ['Customer', 'Customers'],
  address: ['Address', 'Addresses'],
  device: ['Device', 'Devices'],
  application: ['Application', 'Applications'],
  peer: ['Peer', 'Peers'],
  country: ['Country', 'Countries'],
  as: ['AS', 'ASs'],
  port: ['Port', 'Ports'],
  transport: ['Transport', 'Transports'],
  direction: ['Direction', 'Directions'],
  sensor: ['Sensor', 'Sensors'],
  scope: ['Scope', 'Scopes'],
};

export const nameOf = (dimension: Dimension): string => names[dimension][0];
export const manyOf = (dimension: Dimension): string => names[dimension][1];

/** Why there is nothing to show, and what to do. */
export const nothingIn = ({ query }: Pick<ExploreView, 'query'>): string =>
  query.filters.length === 0
    ? 'No traffic was observed in this range. Choose a longer one.'
    : 'No traffic of this range passes the filters. Remove a filter or choose a longer range.';
