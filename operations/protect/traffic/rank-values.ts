/** Arithmetic of rankings and lines. */
import { type Measure, type Sides, sizeOf as sizeOfAmount } from '#service-kit/explorer/index.ts';
import type { RankedValue, RankOrder } from './exploration.ts';
import type { LineStep } from './explorer-store.ts';

export function sumOf<T>(rows: readonly T[], of: (row: T) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0);
}

/** What a line has at a step: packets per second, or bits per second of the directions that count; null where it is unknown. */
export function lineOf(
  step: Pick<LineStep, 'inboundBps' | 'outboundBps' | 'pps'>,
  directions: Sides,
  measure: Measure,
): number | null {
  if (measure === 'packets') return step.pps;
  const parts = [directions.in ? step.inboundBps : null, directions.out ? step.outboundBps : null];
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? null : known.reduce((sum, part) => sum + part, 0);
}

/** What rows are put in order by. */
export type Rankable = Pick<
  RankedValue,
  'label' | 'inboundBytes' | 'outboundBytes' | 'packets' | 'previous' | 'lastSentAt' | 'outboundP95'
>;

/** How large a row is; nothing where its packets are not known. */
export function sizeOf(row: Rankable, measure: Measure): number {
  return measure === 'packets' ? (row.packets ?? 0) : row.inboundBytes + row.outboundBytes;
}

/** Against the time before: new is the largest change, unknown the smallest. */
function changeOf(row: Rankable, measure: Measure): number {
  const before = row.previous && sizeOfAmount(row.previous, measure);
  if (before === null) return -1;
  const size = sizeOf(row, measure);
  return before === 0 ? (size === 0 ? 0 : Number.POSITIVE_INFINITY) : size / before;
}

const keys: Readonly<Record<Exclude<RankOrder, 'name'>, (row: Rankable, measure: Measure) => number>> = {
  share: sizeOf,
  in: (row) => row.inboundBytes,
  out: (row) => row.outboundBytes,
  packets: (row) => row.packets ?? -1,
  change: changeOf,
  last: (row) => row.lastSentAt?.getTime() ?? 0,
  p95: (row) => row.outboundP95 ?? -1,
};

// Made once: a comparison by the language alone looks for its rules each time.
const byLanguage = new Intl.Collator('en', { numeric: true });

/** Rows in the wanted order; equal ones by their names. */
export function rowOrder(
  order: RankOrder,
  isAscending: boolean,
  measure: Measure,
): (a: Rankable, b: Rankable) => number {
  const byName = (a: Rankable, b: Rankable) => byLanguage.compare(a.label, b.label);
  if (order === 'name') return (a, b) => (isAscending ? byName(a, b) : byName(b, a));
  const of = keys[order];
  return (a, b) => {
    const [left, right] = [of(a, measure), of(b, measure)];
    if (left === right) return byName(a, b);
    return left < right === isAscending ? -1 : 1;
  };
}

/** The first rows of an order, as sorting all of them would have them: few of many take one look at each. */
export function firstOf<Row>(rows: readonly Row[], limit: number, order: (a: Row, b: Row) => number): Row[] {
  if (limit * 10 > rows.length) return rows.toSorted(order).slice(0, limit);
  const first: Row[] = [];
  for (const row of rows) {
    if (first.length === limit && order(first[limit - 1]!, row) <= 0) continue;
    let place = first.length;
    // Equal ones stay in the order in which they came.
    while (place > 0 && order(first[place - 1]!, row) > 0) place -= 1;
    first.splice(place, 0, row);
    if (first.length > limit) first.pop();
  }
  return first;
}
