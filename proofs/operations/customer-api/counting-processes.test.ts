// Slow: counts over two processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveExactCount } from './exact-count.prove.ts';

test('API-8.1: requests over two processes get the numbers 1 to N, each once', async () => {
  assert.deepEqual((await proveExactCount({ requests: 600, processes: 2, isDurable: false })).faults, []);
});
