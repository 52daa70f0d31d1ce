/** What the explorer shows, as its URL says it, and the URLs of views that differ in one thing. */
import {
  directionsOf,
  type ExploredDimension,
  type FilterDimension,
  type Measure,
  measures,
  namesApplications,
  type RankedDimension,
  type RankOrder,
  rankOrders,
  readFilters,
  type TrafficFilter,
  withFilter,
  withoutFilter,
  writeFilters,
} from '#operations/protect/index.ts';
import { type Range, readRange, withQuery } from '#service-kit/pages/index.ts';
import { type ExplorerPlace, isOfApplications } from './place.ts';

export const tops = [5, 7, 10, 20, 50] as const;
const topDefault = 7;
const hourMs = 3_600_000;

export interface TableSort {
  order: RankOrder;
  isAscending: boolean;
}

export interface TrafficView {
  /** Path and query of the page. */
  url: string;
  /** As it was typed. */
  typed: string;
  range: Range;
  filters: readonly TrafficFilter[];
  faults: readonly string[];
  by: ExploredDimension;
  /** What the chart's lines are, and by what values are the largest. */
  measure: Measure;
  /** Why it is not the measure that was asked for, as a sentence. */
  measureFault: string | null;
  /** Dimensions of the tables: the one of the chart, and two further ones. */
  tables: readonly RankedDimension[];
  sorts: readonly TableSort[];
  shape: 'stacked' | 'lines';
  top: number;
  isCompared: boolean;
  tab: 'time' | 'flows';
}

/** Values of a URL that belong to one answer of the page, not to the view. */
const passing = { format: undefined, table: undefined, saved: undefined };
/** Grouped by the first of these that is not already one value. */
const preferred: readonly RankedDimension[] = [
  ...(['server', 'customer', 'app', 'port', 'address', 'node', 'cluster', 'transport'] as const),
];
/** With more servers the page does not open with applications: they have many rows of each. */
const serversWithApplications = 500;

export type GivenView = Readonly<Record<string, unknown>>;

/** Ranges of a day and more are whole hours, so that every page and every list has the same numbers for them. */
export function readTrafficRange(values: GivenView, nowMs: number, fallback: '1h' | '6h' | '24h'): Range {
  const range = readRange(values, nowMs, fallback);
  if (range.name === 'custom' || range.toMs - range.fromMs < 24 * hourMs) return range;
  const toMs = Math.ceil(nowMs / hourMs) * hourMs;
  return { ...range, fromMs: toMs - (range.toMs - range.fromMs), toMs };
}

/** The filters and the range that a URL asks for. */
export function readQuestion(place: ExplorerPlace, values: GivenView, nowMs: number) {
  const typed = typeof values.q === 'string' ? values.q : '';
  const { filters, faults } = readFilters(typed, place.filters);
  const range = readTrafficRange(values, nowMs, place.defaultRange);
  return { typed, filters, faults, range, ...readMeasure(values, filters) };
}

/** Packets where they are asked for and known: of addresses, both directions together (NET-2.4.2). */
function readMeasure(
  values: GivenView,
  filters: readonly TrafficFilter[],
): Pick<TrafficView, 'measure' | 'measureFault'> {
  const measure = measures.find((one) => one === values.measure) ?? 'bytes';
  if (measure === 'bytes') return { measure, measureFault: null };
  const directions = directionsOf(filters);
  if (isOfApplications(String(values.by)) || namesApplications(filters))
    return { measure: 'bytes', measureFault: unknownOf('application, port or transport') };
  if (!directions.in || !directions.out)
    return { measure: 'bytes', measureFault: unknownOf('direction: in and out are counted together') };
  return { measure, measureFault: null };
}

const unknownOf = (what: string) => `Packets are counted by address. They are not known by ${what}.`;

/** The whole view; `serverCount` servers pass its filters. What can't be read has its default. */
export function readView(
  place: ExplorerPlace,
  url: string,
  values: GivenView,
  { serverCount, nowMs }: { serverCount: number; nowMs: number },
): TrafficView {
  const question = readQuestion(place, values, nowMs);
  const { filters } = question;
  const free = preferred.filter(
    (one) =>
      place.dimensions.includes(one) &&
      !isSingle(filters, one) &&
      (question.measure === 'bytes' || !isOfApplications(one)) &&
      (serverCount <= serversWithApplications || !isOfApplications(one)),
  );
  const by = place.dimensions.find((one) => one === values.by) ?? free[0] ?? 'direction';
  const asked = typeof values.tables === 'string' ? values.tables.split(',') : [];
  const known = asked.flatMap((name) => place.dimensions.find((one) => one === name) ?? []);
  const rest = [...known, ...free]
    .filter((one): one is RankedDimension => one !== 'direction' && one !== by)
    .filter((one, index, all) => all.indexOf(one) === index);
  const tables = by === 'direction' ? rest.slice(0, 2) : [by, ...rest.slice(0, 2)];
  const top = tops.find((one) => String(one) === values.top) ?? topDefault;
  return {
    ...question,
    ...{ by, tables, top },
    url: withQuery(url, passing),
    sorts: [1, 2, 3].map((place) => readTableSort(values[`sort${place}`], values[`dir${place}`])),
    shape: values.shape === 'lines' ? 'lines' : 'stacked',
    isCompared: values.compare === 'previous',
    tab: values.tab === 'flows' ? 'flows' : 'time',
  };
}

function readTableSort(name: unknown, direction: unknown): TableSort {
  const order = rankOrders.find((one) => one === name) ?? 'total';
  return { order, isAscending: direction === 'asc' };
}

/** True where the filters leave one value: a server is of one customer, on one node. */
function isSingle(filters: readonly TrafficFilter[], dimension: RankedDimension): boolean {
  const has = (name: FilterDimension) =>
    filters.some((one) => one.dimension === name && !one.isNot && one.values.length === 1);
  if (dimension === 'service') return has('app');
  return has(dimension) || (['customer', 'node', 'cluster'].includes(dimension) && has('server'));
}

function withFilters(
  { url, by }: Pick<TrafficView, 'url' | 'by'>,
  filters: readonly TrafficFilter[],
): string {
  const text = writeFilters(filters);
  const isOne = by !== 'direction' && isSingle(filters, by);
  return withQuery(url, { q: text === '' ? undefined : text, ...(isOne && { by: undefined }) });
}

const filterOf = (dimension: RankedDimension): FilterDimension =>
  dimension === 'service' ? 'app' : dimension;

/** The view of this value alone. Others of its dimension are left out, because the value is one of them. */
export function onlyHref(view: TrafficView, dimension: RankedDimension, value: string): string {
  const name = filterOf(dimension);
  const others = view.filters.filter((one) => one.dimension !== name || one.isNot);
  return withFilters(view, withFilter(others, name, value));
}

/** The view without this value. */
export function withoutHref(view: TrafficView, dimension: RankedDimension, value: string): string {
  return withFilters(view, withFilter(view.filters, filterOf(dimension), value, true));
}

/** The view without one value of a filter. */
export function removeHref(view: TrafficView, filter: TrafficFilter, value: string): string {
  return withFilters(view, withoutFilter(view.filters, filter, value));
}

/** The view with the opposite of a filter. */
export function negateHref(view: TrafficView, filter: TrafficFilter): string {
  const others = view.filters.filter((one) => one !== filter);
  const opposite = filter.values.reduce<TrafficFilter[]>(
    (all, value) => withFilter(all, filter.dimension, value, !filter.isNot),
    others,
  );
  return withFilters(view, opposite);
}

/** The explorer with these values as filters, from another page. */
export function exploreHref(
  path: string,
  filters: Partial<Record<FilterDimension, string>>,
  values: Readonly<Record<string, string | undefined>> = {},
): string {
  const all = Object.entries(filters).reduce<TrafficFilter[]>(
    (list, [dimension, value]) => withFilter(list, dimension as FilterDimension, value),
    [],
  );
  return withQuery(path, { q: all.length === 0 ? undefined : writeFilters(all), ...values });
}
