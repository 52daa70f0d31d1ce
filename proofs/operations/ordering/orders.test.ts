// Slow: kills processes in the middle of orders.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crossCases, proveOrders } from './order-proof.ts';

test('API-3.2, API-3.3: orders whose gateway fails and whose process dies are bought or not, never both', async () => {
  // Every ninth pair of behaviour and kill point, so that each of both is met.
  const cases = crossCases(90).filter((_, index) => index % 11 === 0);
  const result = await proveOrders(cases, { processEvery: 5, report: () => {} });
  assert.deepEqual(result.faults, []);
  assert.ok(result.kills + result.cuts > 3);
});
