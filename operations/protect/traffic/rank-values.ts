/** Arithmetic of rankings and lines. */
import type { RankedValue, RankOrder } from './exploration.ts';
import type { UsageStep } from './usage-store.ts';

export function sumOf<T>(rows: readonly T[], of: (row: T) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0);
}

/** Bits per second of the directions that count; null where none of them was observed. */
export function lineOf(
  step: Pick<UsageStep, 'inboundBps' | 'outboundBps'>,
  directions: { in: boolean; out: boolean },
): number | null {
  const parts = [directions.in ? step.inboundBps : null, directions.out ? step.outboundBps : null];
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? null : known.reduce((sum, part) => sum + part, 0);
}

/** The nearest rank of what is known; null of nothing. */
export function p95Of(rates: readonly (number | null)[]): number | null {
  const known = rates.filter((rate) => rate !== null).sort((a, b) => a - b);
  return known.length === 0 ? null : known[Math.ceil(known.length * 0.95) - 1]!;
}

/** Against the time before: new is the largest change, unknown the smallest. */
export function changeOf({ inboundBytes, outboundBytes, previousBytes }: RankedValue): number {
  if (previousBytes === null) return -1;
  const bytes = inboundBytes + outboundBytes;
  return previousBytes === 0 ? (bytes === 0 ? 0 : Number.POSITIVE_INFINITY) : bytes / previousBytes;
}

const keys: Readonly<Record<Exclude<RankOrder, 'name'>, (row: RankedValue) => number>> = {
  total: (row) => row.inboundBytes + row.outboundBytes,
  in: (row) => row.inboundBytes,
  out: (row) => row.outboundBytes,
  change: changeOf,
  last: (row) => row.lastSentAt?.getTime() ?? 0,
  p95: (row) => row.outboundP95 ?? -1,
};

/** Rows in the wanted order; equal ones by their names. */
export function rowOrder(order: RankOrder, isAscending: boolean): (a: RankedValue, b: RankedValue) => number {
  const byName = (a: RankedValue, b: RankedValue) => a.label.localeCompare(b.label, 'en', { numeric: true });
  if (order === 'name') return (a, b) => (isAscending ? byName(a, b) : byName(b, a));
  const of = keys[order];
  return (a, b) => {
    const [left, right] = [of(a), of(b)];
    if (left === right) return byName(a, b);
    return left < right === isAscending ? -1 : 1;
  };
}
