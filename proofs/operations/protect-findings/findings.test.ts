// Slow: runs random histories, and again for each of eight planted bugs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove as proveChecks } from './finding-checks.prove.ts';
import { prove as proveIgnores } from './finding-ignores.prove.ts';

test('NET-2.6.5: over random histories, an ignore holds for what it is bound to alone', async () => {
  const said: string[] = [];
  const result = await proveIgnores({ n: 24, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '5 of 5', 'a planted bug was not noticed');
});

test('NET-2.6.5: of checks in any order, repeated and at once, the newest is held', async () => {
  const said: string[] = [];
  const result = await proveChecks({ n: 30, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '3 of 3', 'a planted bug was not noticed');
});
