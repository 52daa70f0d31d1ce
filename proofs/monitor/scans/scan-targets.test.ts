// Slow: plans scans of random inventories, and again for each planted fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantedFaults, prove } from './scan-targets.prove.ts';

test('NET-2.7.8: of random nodes exactly the right addresses are planned, each from a right source; planted faults are detected', async () => {
  const lines: string[] = [];
  const result = await prove({ n: 200, seed: 1, report: (line) => lines.push(line) });
  const all = plantedFaults.length;
  assert.equal(result.failures, 0, lines.join('\n'));
  assert.equal(result.plantedBugsCaught, `${all} of ${all}`, lines.join('\n'));
});
