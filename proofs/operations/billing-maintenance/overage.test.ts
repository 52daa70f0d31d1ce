// Slow: runs random schedules, and up to 400 more for each planted fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveOverage } from './overage-proof.ts';

test('D5, D7: any schedule of ticks, kills and settings comes to the same charges', async () => {
  const result = await proveOverage({ n: 2, seed: 4, report: () => {} });
  assert.deepEqual(result.failures, []);
  assert.equal(result.planted.caught, result.planted.of);
});
