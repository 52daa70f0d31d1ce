// Slow: asks every view of the explorer for two sites, and again with each of eight planted bugs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './site-isolation.prove.ts';

test("a query of a site's traffic by any dimension and filter tells nothing of another site; a statement without its filter of the site is noticed", async () => {
  const said: string[] = [];
  const result = await prove({ n: 120, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '8 of 8', said.join('\n'));
  assert.ok(result.answered > 30, `only ${result.answered} answers had traffic`);
});
