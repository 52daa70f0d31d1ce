// Slow: sends thousands of hostile reports, and again for each planted fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantedFaults, prove } from './scan-reports.prove.ts';

test('NET-5.3, NET-2.7.10: hostile reports of scans are refused by name or stored as a model says, beside an honest sensor; planted faults are detected', async () => {
  const lines: string[] = [];
  const result = await prove({ n: 120, seed: 1, report: (line) => lines.push(line) });
  const all = plantedFaults.length;
  assert.equal(result.failures, 0, lines.join('\n'));
  assert.equal(result.plantedBugsCaught, `${all} of ${all}`, lines.join('\n'));
});
