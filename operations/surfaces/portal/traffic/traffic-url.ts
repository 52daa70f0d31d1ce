/** What a traffic page was asked for, and the addresses of its other views: all of it is in the URL. */
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import {
  type ExplorerDimension,
  explorerDimensions,
  type FilterDimension,
  readFilters,
  type TrafficFilter,
  withFilter,
  writeFilters,
} from '#operations/protect/index.ts';
import { type Range, withQuery } from '#service-kit/pages/index.ts';
import { readTrafficRange } from '../../parts/index.ts';

export const TrafficQuery = Type.Object({
  range: Type.Optional(Type.String({ maxLength: 20 })),
  from: Type.Optional(Type.String({ maxLength: 40 })),
  to: Type.Optional(Type.String({ maxLength: 40 })),
  /** Only this address. */
  address: Type.Optional(Type.String({ maxLength: 64 })),
  /** Filters, such as `app:example.com port:443`. */
  q: Type.Optional(Type.String({ maxLength: 1_000 })),
  by: Type.Optional(Type.String({ maxLength: 20 })),
  use: Type.Optional(Type.String({ maxLength: 10 })),
});

export interface TrafficAsk {
  range: Range;
  address: string | null;
  filters: readonly TrafficFilter[];
  /** What of the filters could not be read. */
  faults: readonly string[];
  by: ExplorerDimension;
  /** Usage by month instead of by day. */
  isByMonth: boolean;
}

export type GivenTraffic = Partial<Record<'range' | 'from' | 'to' | 'address' | 'q' | 'by' | 'use', string>>;

export function readAsk(
  query: GivenTraffic,
  nowMs: number,
  defaults: { range: '1h' | '6h' | '24h'; by: ExplorerDimension; allowed: readonly ExplorerDimension[] },
): TrafficAsk {
  const { filters, faults } = readFilters(query.q ?? '');
  const by = explorerDimensions.find((each) => each === query.by);
  return {
    range: readTrafficRange(query, nowMs, defaults.range),
    address: query.address ? (canonicalAddress(query.address) ?? query.address) : null,
    filters,
    faults,
    by: by !== undefined && defaults.allowed.includes(by) ? by : defaults.by,
    isByMonth: query.use === 'month',
  };
}

/** The page of this view; `changes` are query values that differ. */
export function urlOf(
  path: string,
  { range, address, filters, by, isByMonth }: TrafficAsk,
  defaultBy: ExplorerDimension,
  changes: Readonly<Record<string, string | undefined>> = {},
): string {
  const isCustom = range.name === 'custom';
  const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  return withQuery(path, {
    range: range.name,
    from: isCustom ? utc(range.fromMs) : undefined,
    to: isCustom ? utc(range.toMs) : undefined,
    address: address ?? undefined,
    q: filters.length === 0 ? undefined : writeFilters(filters),
    by: by === defaultBy ? undefined : by,
    use: isByMonth ? 'month' : undefined,
    ...changes,
  });
}

/** The same page with one filter more. */
export function filterHref(
  url: string,
  filters: readonly TrafficFilter[],
  dimension: FilterDimension,
  value: string,
): string {
  return withQuery(url, { q: writeFilters(withFilter(filters, dimension, value)) });
}

/** A range that begins with the server: nothing is drawn before there was anything to observe. */
export function sinceCreation(range: Range, createdMs: number, firstStepMs: number | undefined): Range {
  const stepMs = range.stepSeconds * 1000;
  const beginMs = Math.floor(Math.min(createdMs, firstStepMs ?? createdMs) / stepMs) * stepMs;
  if (beginMs <= range.fromMs) return range;
  // At least one step stays, or an axis would have no length.
  return { ...range, fromMs: Math.min(beginMs, range.toMs - stepMs) };
}
