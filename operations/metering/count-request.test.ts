import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CountRow, createCounter } from './count-request.ts';

class Locked extends Error {}

const createTestCounter = (write: (counts: readonly CountRow[]) => Promise<Map<number, number>>) =>
  createCounter({ write, isLocked: (error) => error instanceof Locked });

/** Lets every promise that can go on do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('counts that arrive during a write share the next one, and each gets its own number', async () => {
  const writes: (readonly CountRow[])[] = [];
  const totals = new Map<number, number>();
  const gate = Promise.withResolvers<void>();
  const counter = createTestCounter(async (counts) => {
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
  const counter = createTestCounter(async (counts) => {
    if (isBroken) throw new Error('no database');
    return new Map(counts.map((row) => [row.tenantId, row.count]));
  });
  await assert.rejects(counter.count(1, 'a'), /no database/);
  isBroken = false;
  assert.equal(await counter.count(1, 'a'), 1);
});

test('an account whose row is locked is written alone, and delays none but its own requests', async () => {
  const totals = new Map<number, number>();
  const waits: { accounts: number[]; lockTimeoutMs: number }[] = [];
  let lock: ReturnType<typeof Promise.withResolvers<void>> | null = Promise.withResolvers<void>();
  const counter = createCounter({
    isLocked: (error) => error instanceof Locked,
    async write(counts, lockTimeoutMs) {
      const accounts = counts.map((row) => row.tenantId);
      waits.push({ accounts, lockTimeoutMs });
      // The first wait of a lock ends by its time-out, later ones when the test says so.
      if (accounts.includes(1) && lock !== null) {
        if (lockTimeoutMs > 50) await lock.promise;
        if (lock !== null) throw new Locked();
      }
      for (const { tenantId, count } of counts) totals.set(tenantId, (totals.get(tenantId) ?? 0) + count);
      return new Map(totals);
    },
  });
  const stuck = assert.rejects(counter.count(1, 'a'), Locked);
  // Caught up in the same write as the locked account: written again, alone, and numbered once.
  assert.equal(await counter.count(2, 'b'), 1);
  await settle();
  assert.deepEqual(
    waits.map(({ accounts }) => accounts),
    [[1, 2], [1], [2], [1]],
  );
  const alsoStuck = assert.rejects(counter.count(1, 'a'), Locked);
  for (let number = 2; number < 50; number += 1) assert.equal(await counter.count(2, 'b'), number);
  assert.equal(
    waits.filter(({ accounts }) => accounts.includes(1)).length,
    3,
    'one write waits for the lock',
  );
  lock.resolve();
  await stuck;
  await alsoStuck;
  lock = null;
  assert.equal(await counter.count(1, 'a'), 1, 'what was not recorded is not made up');
  await settle();
  const both = [counter.count(1, 'a'), counter.count(2, 'b')];
  assert.deepEqual(await Promise.all(both), [2, 50]);
  assert.deepEqual(waits.at(-1)?.accounts, [1, 2], 'they share a write again');
});

test('what arrives while an account is written alone is counted too when its lock goes', async () => {
  const lock = Promise.withResolvers<void>();
  let total = 0;
  const counter = createCounter({
    isLocked: (error) => error instanceof Locked,
    async write(counts, lockTimeoutMs) {
      if (lockTimeoutMs <= 50) throw new Locked();
      await lock.promise;
      for (const { count } of counts) total += count;
      return new Map([[1, total]]);
    },
  });
  const first = counter.count(1, 'a');
  await settle();
  const second = counter.count(1, 'a');
  lock.resolve();
  assert.equal(await first, 1);
  assert.equal(await Promise.race([second, settle().then(() => null)]), 2);
});

test('many locked accounts take four connections at most', async () => {
  let open = 0;
  let openMax = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const counter = createCounter({
    isLocked: (error) => error instanceof Locked,
    async write(counts, lockTimeoutMs) {
      if (lockTimeoutMs > 50) {
        open += 1;
        openMax = Math.max(openMax, open);
        await promise;
        open -= 1;
      }
      if (counts.length > 0) throw new Locked();
      return new Map();
    },
  });
  const counts = Array.from({ length: 20 }, (_, tenantId) => counter.count(tenantId, 'k').catch(() => null));
  for (let turn = 0; turn < 20; turn += 1) await settle();
  assert.equal(openMax, 4);
  resolve();
  assert.deepEqual(new Set(await Promise.all(counts)), new Set([null]));
});
