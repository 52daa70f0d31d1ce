import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantedFaults, prove } from './intake-bounds.prove.ts';

test('hostile uploads over HTTP are refused in bounded slices, the honest sensor beside them is read and stored; planted faults are detected', async () => {
  const lines: string[] = [];
  const result = await prove({ n: 80, seed: 1, report: (line) => lines.push(line) });
  const all = plantedFaults.length;
  assert.equal(result.failures, 0, lines.join('\n'));
  assert.equal(result.plantedBugsCaught, `${all} of ${all}`, lines.join('\n'));
});
