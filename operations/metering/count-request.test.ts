import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CountRow, createCounter } from './count-request.ts';

test('counts that arrive during a write share the next one, and each gets its own number', async () => {
  const writes: (readonly CountRow[])[] = [];
  const totals = new Map<number, number>();
  const gate = Promise.withResolvers<void>();
  const counter = createCounter(async (counts) => {
    writes.push(counts);
    if (writes.length === 1) await gate.promise;
    for (const { tenantId, count } of counts) totals.set(tenantId, (totals.get(tenantId) ?? 0) + count);
    return new Map(totals);
  });
  const first = counter.count(1, 'a');
  await new Promise((resolve) => setImmediate(resolve));
  const later = [counter.count(1, 'a'), counter.count(1, 'b'), counter.count(2, 'c'), counter.count(1, 'a')];
  gate.resolve();
  assert.equal(await first, 1);
  assert.deepEqual(await Promise.all(later), [2, 3, 1, 4]);
  assert.equal(writes.length, 2);
  assert.deepEqual(writes[1], [
    { tenantId: 1, keyId: 'a', count: 2 },
    { tenantId: 1, keyId: 'b', count: 1 },
    { tenantId: 2, keyId: 'c', count: 1 },
  ]);
});

test('a write that fails fails its own requests only', async () => {
  let isBroken = true;
  const counter = createCounter(async (counts) => {
    if (isBroken) throw new Error('no database');
    return new Map(counts.map((row) => [row.tenantId, row.count]));
  });
  await assert.rejects(counter.count(1, 'a'), /no database/);
  isBroken = false;
  assert.equal(await counter.count(1, 'a'), 1);
});
