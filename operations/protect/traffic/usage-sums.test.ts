import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Ordered, orderOf } from '#service-kit/explorer/index.ts';
import { addUp, besideBefore, firstOf } from './usage-sums.ts';

const sum = (allocationId: number, serverId: number, packets: number | null) => ({
  ...{ allocationId, serverId, address: `192.0.2.${allocationId}`, packets },
  ...{ inBytes: allocationId, outBytes: 10 * allocationId, arePacketsPartial: packets === null },
});

test('adding up leaves its rows as they are, so that the same rows can be added up by something else', () => {
  const both = { in: true, out: true };
  const rows = besideBefore(
    both,
    [sum(1, 7, 5), sum(2, 7, null), sum(3, 7, 6), sum(4, 8, null)],
    [sum(2, 7, 9)],
  );
  const before = structuredClone(rows);
  const byServer = addUp(rows, ({ serverId }) => serverId);
  assert.deepEqual(
    byServer.map((row) => [row.serverId, row.inBytes, row.packets, row.previousIn, row.arePacketsPartial]),
    [
      [7, 6, 11, 2, true],
      [8, 4, null, 0, true],
    ],
  );
  const [all] = addUp(byServer, () => 'all');
  assert.deepEqual([all!.inBytes, all!.outBytes, all!.previousOut], [10, 100, 20]);
  assert.deepEqual(rows, before);
  assert.deepEqual(
    byServer,
    addUp(rows, ({ serverId }) => serverId),
  );
});

interface Row extends Ordered {
  place: number;
  name: string;
}

/** Sizes that come again and again, and names that do: many rows are equal in the order. */
const rows: Row[] = Array.from({ length: 500 }, (_, place) => ({
  place,
  name: `web-${(place * 7) % 40}`,
  amount: { inBytes: (place * 7919) % 23, outBytes: (place * 104_729) % 11, packets: null },
  previous: place % 3 === 0 ? null : { inBytes: place % 5, outBytes: 0, packets: null },
}));

test('the first rows of an order are those that sorting all of them puts first, equal ones as they came', () => {
  for (const by of ['share', 'in', 'out', 'change', 'name'])
    for (const direction of ['asc', 'desc'] as const)
      for (const limit of [1, 10, 49, 51, 500, 1_000]) {
        const order = orderOf<Row>({ by, direction }, 'bytes', ({ name }) => name);
        const sorted = [...rows].sort(order).slice(0, limit);
        assert.deepEqual(
          firstOf(rows, limit, order).map(({ place }) => place),
          sorted.map(({ place }) => place),
          `${by} ${direction} ${limit}`,
        );
      }
});
