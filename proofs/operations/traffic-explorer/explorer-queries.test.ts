// Slow: plants eleven bugs, and asks up to 60 queries of two customers twice for each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './explorer-queries.prove.ts';

test("NET-2.4.4: a query of traffic by any dimension and filter tells nothing of another customer's", async () => {
  const said: string[] = [];
  const result = await prove({ n: 60, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '11 of 11', said.join('\n'));
  assert.ok(result.answered > 15, `only ${result.answered} answers had traffic`);
});
