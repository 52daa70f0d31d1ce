/** What a traffic page was asked for, and the addresses of its other views: all of it is in the URL. */
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import {
  type Dimension,
  type ExplorerBox,
  type Filter,
  filterTextMax,
  printFilters,
  readQuestion,
  readUrl,
  type TextFault,
  type UrlValues,
} from '#service-kit/explorer/index.ts';
import { type Range, withQuery } from '#service-kit/pages/index.ts';
import { readTrafficRange } from '../../parts/index.ts';

export const TrafficQuery = Type.Object({
  range: Type.Optional(Type.String({ maxLength: 20 })),
  from: Type.Optional(Type.String({ maxLength: 40 })),
  to: Type.Optional(Type.String({ maxLength: 40 })),
  /** Only this address. */
  address: Type.Optional(Type.String({ maxLength: 64 })),
  /** Filters, such as `app:example.com port:443`. */
  q: Type.Optional(Type.String({ maxLength: filterTextMax })),
  by: Type.Optional(Type.String({ maxLength: 20 })),
  use: Type.Optional(Type.String({ maxLength: 10 })),
});

export interface TrafficAsk {
  range: Range;
  address: string | null;
  filters: readonly Filter[];
  /** What could not be read. */
  faults: readonly TextFault[];
  /** Null: in and out. */
  by: Dimension | null;
  /** Usage by month instead of by day. */
  isByMonth: boolean;
}

/** What can be asked of one server. */
export const serverBox: ExplorerBox = {
  ...{ groups: ['application', 'port'], filters: ['application', 'port', 'transport', 'side'] },
  ...{ hasSegments: false, topMax: 50 },
};

export function readAsk(query: UrlValues, nowMs: number): TrafficAsk {
  const url = readUrl(query);
  const { filters, by } = readQuestion(url, serverBox);
  const address = url.text('address');
  return {
    range: readTrafficRange(query, nowMs, '6h'),
    address: address && (canonicalAddress(address) ?? address),
    ...{ filters, faults: url.faults, by: by?.[0] ?? null },
    isByMonth: query.use === 'month',
  };
}

/** The page of this view; `changes` are query values that differ. */
export function urlOf(path: string, { range, address, filters, by, isByMonth }: TrafficAsk): string {
  const isCustom = range.name === 'custom';
  const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  return withQuery(path, {
    range: range.name,
    from: isCustom ? utc(range.fromMs) : undefined,
    to: isCustom ? utc(range.toMs) : undefined,
    address: address ?? undefined,
    q: printFilters(filters) || undefined,
    by: by ?? undefined,
    use: isByMonth ? 'month' : undefined,
  });
}

/** The same page with one filter more. */
export function filterHref(
  url: string,
  filters: readonly Filter[],
  dimension: Dimension,
  value: string,
): string {
  return withQuery(url, { q: printFilters([...filters, { dimension, is: true, values: [value] }]) });
}

/** A range that begins with the server: nothing is drawn before there was anything to observe. */
export function sinceCreation(range: Range, createdMs: number, firstStepMs: number | undefined): Range {
  const stepMs = range.stepSeconds * 1000;
  const beginMs = Math.floor(Math.min(createdMs, firstStepMs ?? createdMs) / stepMs) * stepMs;
  if (beginMs <= range.fromMs) return range;
  // At least one step stays, or an axis would have no length.
  return { ...range, fromMs: Math.min(beginMs, range.toMs - stepMs) };
}
