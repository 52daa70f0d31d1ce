// Slow: delivers incidents in random orders, and again for each planted fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runOrders } from './incident-orders.prove.ts';

test('what several captures saw makes the same incidents in every order', async () => {
  const { offences, merged } = await runOrders({ n: 30, seed: 5 }, null);
  assert.deepEqual(offences, []);
  assert.ok(merged > 0, 'some orders made two incidents of one before they knew better');
});

test('an observation that stays with its first incident is noticed', async () => {
  const { offences } = await runOrders({ n: 20, seed: 5 }, 'merge_forgotten');
  assert.ok(offences.length > 0);
});
