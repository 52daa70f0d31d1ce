// Slow: asks hundreds of queries with each of eight planted bugs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './site-isolation.prove.ts';

test("a statement without its filter of the site is noticed by what answers tell of another site's traffic", async () => {
  const said: string[] = [];
  const result = await prove({ n: 60, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '8 of 8', said.join('\n'));
});
