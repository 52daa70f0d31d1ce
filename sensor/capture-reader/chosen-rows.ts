/** Selects and orders the rows that a table shows, without creating the others. */
import type { TableRows } from '#sensor/capture/index.ts';
import type { SortOrder } from './read-query.ts';

/** Up to this many rows are selected in one pass; for more, all rows are sorted. */
const onePassMax = 1000;

/** Numbers of the first `top` rows in this order; 0 for all. Rows of equal weight keep their order. */
export function chooseRows<T>(
  rows: TableRows<T>,
  sort: SortOrder,
  top: number,
  nameOf: (row: T) => string,
): ArrayLike<number> & Iterable<number> {
  const { count } = rows;
  const wanted = top === 0 ? count : Math.min(top, count);
  if (sort === 'time') return Uint32Array.from({ length: wanted }, (_, row) => row);
  if (sort === 'name') {
    const isBefore = (a: string, b: string) => a < b;
    return best(count, wanted, (row) => nameOf(rows.at(row)), isBefore);
  }
  const isBefore = (a: number, b: number) => a > b;
  return best(count, wanted, (row) => rows.weight(row, sort), isBefore);
}

function best<K>(
  count: number,
  wanted: number,
  keyOf: (row: number) => K,
  isBefore: (a: K, b: K) => boolean,
) {
  if (wanted > onePassMax) {
    const keys = Array.from({ length: count }, (_, row) => keyOf(row));
    const order = Uint32Array.from({ length: count }, (_, row) => row);
    order.sort((a, b) => (isBefore(keys[a]!, keys[b]!) ? -1 : isBefore(keys[b]!, keys[a]!) ? 1 : a - b));
    return order.subarray(0, wanted);
  }
  const keys: K[] = [];
  const chosen: number[] = [];
  for (let row = 0; row < count; row += 1) {
    const key = keyOf(row);
    if (chosen.length === wanted && (wanted === 0 || !isBefore(key, keys[wanted - 1]!))) continue;
    let at = chosen.length;
    while (at > 0 && isBefore(key, keys[at - 1]!)) at -= 1;
    keys.splice(at, 0, key);
    chosen.splice(at, 0, row);
    if (chosen.length > wanted) {
      keys.pop();
      chosen.pop();
    }
  }
  return chosen;
}
