// Slow: kills processes in the middle of orders, and runs each proof with planted bugs too.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveContests } from './contest-proof.ts';
import { crossCases, lateCases, proveOrders } from './order-proof.ts';
import { proveRaces } from './race-proof.ts';

const report = () => {};

test('E1, API-3.2, API-3.3: orders whose gateway fails and whose process dies are bought or not, never both', async () => {
  // Every ninth pair of behaviour and kill point, so that each of both is met.
  const cases = crossCases(90).filter((_, index) => index % 11 === 0);
  const result = await proveOrders(cases, { processEvery: 5, report });
  assert.deepEqual(result.faults, []);
  assert.ok(result.kills + result.cuts > 3);
});

test('E2: a late success is given back once and queues nothing', async () => {
  const result = await proveOrders(lateCases(2), { processEvery: 1_000, report });
  assert.deepEqual(result.faults, []);
  assert.equal(result.refunded, 2);
  const planted = await proveOrders(lateCases(2), {
    fault: 'a late success queues',
    processEvery: 1_000,
    report,
  });
  assert.notDeepEqual(planted.faults, []);
});

test('E3, API-8.b: orders at once meet the hourly cap exactly and never spend credit that is gone', async () => {
  assert.deepEqual((await proveRaces({ n: 4, seed: 2 })).faults, []);
  assert.notDeepEqual((await proveRaces({ n: 20, seed: 2, isUnlocked: true })).faults, []);
});

test('orders that want one thing at once are refused uncharged or charged and made, and nothing stays held', async () => {
  assert.deepEqual((await proveContests({ n: 8, seed: 1 })).faults, []);
  const planted = await proveContests({ n: 20, seed: 1, fault: 'an unpaid order keeps what it holds' });
  assert.notDeepEqual(planted.faults, []);
});
