import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantedFaults, prove } from './robustness.prove.ts';

test('NET-2.2.6: broken packets never throw, hang or pile up, and each has one verdict; planted faults are noticed', async (t) => {
  const result = await prove({ n: 10_000, seed: 1, report: (line) => t.diagnostic(line) });
  assert.equal(result.failures, 0);
  assert.equal(result.plantedBugsCaught, `${plantedFaults.length} of ${plantedFaults.length}`);
});
