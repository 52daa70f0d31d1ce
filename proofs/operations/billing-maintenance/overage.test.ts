// Slow: goes through forty histories of charges.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './overage.prove.ts';

test('API-1.3: any schedule of ticks, kills and settings comes to the same charges', async () => {
  const told: string[] = [];
  const { failures } = await prove({ n: 40, seed: 4, report: (line) => told.push(line) });
  assert.equal(failures, 0, told.join('\n'));
});
