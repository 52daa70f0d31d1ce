import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantedFaults, prove } from './file-robustness.prove.ts';

test('NET-2.2.6: broken capture files of every format are read or refused, each packet counts once; planted faults are noticed', async (t) => {
  const result = await prove({ n: 500, seed: 1, report: (line) => t.diagnostic(line) });
  assert.equal(result.failures, 0);
  assert.equal(result.plantedBugsCaught, `${plantedFaults.length} of ${plantedFaults.length}`);
});
