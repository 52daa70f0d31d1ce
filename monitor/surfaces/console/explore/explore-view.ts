/** What a site's explorer shows, as its URL says it. */
import { type Dimension, type Order, type Query, queryBox, readTimes } from '#monitor/explorer/index.ts';
import * as kit from '#service-kit/explorer/index.ts';
import type { Sort } from '#service-kit/pages/index.ts';

export interface ExploreView extends kit.ExploreView {
  siteId: number;
  by: Dimension | null;
  tables: readonly Dimension[];
  /** Of the chart and the first table. */
  query: Query;
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
const narrowing: readonly kit.Dimension[] = ['server', 'address', 'device', 'application', 'peer'];
/** Peers are connections between exact addresses, which live for 24 hours (NET-2.2.7). */
const pairsSeconds = 86_400;

/** Reads a view out of the values of a URL; what can't be read has its default and a fault. */
export function readView(siteId: number, url: string, values: kit.UrlValues): ExploreView {
  const times = kit.readUrl(values);
  const { range, step } = readTimes(times);
  const isShort = secondsOf(range) <= pairsSeconds;
  const view = kit.readView(queryBox, url, values, ({ filters }) => {
    const isNarrow = filters.some((one) => one.is && narrowing.includes(one.dimension));
    return (isNarrow ? preferred : preferredOfAll).filter((one) => one !== 'peer' || isShort);
  });
  const by = view.by as Dimension | null;
  const { filters, measure, top, compare } = view;
  const order = orderOf(by === null ? null : view.sorts[by]!);
  return {
    ...view,
    ...{ siteId, by, tables: view.tables as readonly Dimension[], faults: [...view.faults, ...times.faults] },
    query: { ...{ siteId, range, step, filters, measure, top, compare, order }, by: by === null ? [] : [by] },
  };
}

const secondsOf = (range: Query['range']) =>
  'lastSeconds' in range ? range.lastSeconds : range.to - range.from;

/** Of a table in this order: which values it has. The others reorder what is the largest. */
export const orderOf = (sort: Sort | null): Order =>
  sort?.by === 'in' || sort?.by === 'out' ? sort.by : 'size';
