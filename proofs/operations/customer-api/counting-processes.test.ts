// Slow: counts over two processes, twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveExactCount } from './prove-exact-count.ts';

test('API-8.1: requests over two processes get the numbers 1 to N, each once; numbers that a process makes up are seen', async () => {
  const options = { requests: 600, processes: 2, isDurable: false };
  const [sound, broken] = [
    await proveExactCount(options),
    await proveExactCount({ ...options, bug: 'own numbers' }),
  ];
  assert.deepEqual(sound.faults, []);
  assert.ok(broken.faults.length > 0);
});
