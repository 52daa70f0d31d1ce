import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstOf, type Rankable, rowOrder } from './rank-values.ts';

interface Row extends Rankable {
  place: number;
}

/** Sizes that come again and again, and names that do: many rows are equal in the order. */
const rows: Row[] = Array.from({ length: 500 }, (_, place) => ({
  place,
  label: `web-${(place * 7) % 40}`,
  inboundBytes: (place * 7919) % 23,
  outboundBytes: (place * 104_729) % 11,
  packets: null,
  previous: place % 3 === 0 ? null : { inBytes: place % 5, outBytes: 0, packets: null },
  lastSentAt: null,
  outboundP95: null,
}));

test('the first rows of an order are those that sorting all of them puts first, equal ones as they came', () => {
  for (const name of ['share', 'in', 'out', 'change', 'name'] as const)
    for (const isAscending of [true, false])
      for (const limit of [1, 10, 49, 51, 500, 1_000]) {
        const order = rowOrder(name, isAscending, 'bytes');
        const sorted = [...rows].sort(order).slice(0, limit);
        assert.deepEqual(
          firstOf(rows, limit, order).map(({ place }) => place),
          sorted.map(({ place }) => place),
          `${name} ${isAscending} ${limit}`,
        );
      }
});
