import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './vulnerability-matcher.prove.ts';

test('NET-2.6.2: configurations are evaluated whole, as an independent evaluator does', async () => {
  const said: string[] = [];
  const result = await prove({ n: 1_000, seed: 4, report: (line) => said.push(line) });
  assert.deepEqual([said, result.failures, result.plantedBugsCaught], [[], 0, '5 of 5']);
});
