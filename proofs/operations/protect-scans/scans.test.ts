// Slow: runs random histories of requests over several processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove as proveLimits } from './scan-limits.prove.ts';
import { prove as proveRequests } from './scan-requests.prove.ts';

test('NET-3.1: over random histories, scan requests have the states that the rules say', async () => {
  const said: string[] = [];
  const result = await proveRequests({ n: 12, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '3 of 3', 'a planted bug was not noticed');
});

test('NET-8.1: clicks in four processes make one set of requests for each server, within the limits', async () => {
  const said: string[] = [];
  const result = await proveLimits({ n: 12, seed: 1, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
  assert.equal(result.plantedBugsCaught, '3 of 3', 'a planted bug was not noticed');
});
