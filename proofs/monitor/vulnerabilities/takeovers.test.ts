import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './refresh-takeovers.prove.ts';

test('NET-2.6.4: one worker refreshes at a time, and one that was frozen past its lease stores nothing', async () => {
  const said: string[] = [];
  const result = await prove({ n: 6, seed: 3, report: (line) => said.push(line) });
  assert.deepEqual([said, result.failures, result.plantedBugsCaught], [[], 0, '2 of 2']);
});
