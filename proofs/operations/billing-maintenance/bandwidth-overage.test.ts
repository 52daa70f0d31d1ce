// Slow: takes twelve accounts through five months.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './bandwidth-overage.prove.ts';

test('API-8.6: a month of an account is charged for traffic once, by what was delivered', async () => {
  const told: string[] = [];
  const { failures } = await prove({ n: 12, seed: 5, report: (line) => told.push(line) });
  assert.equal(failures, 0, told.join('\n'));
});
