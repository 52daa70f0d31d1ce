// Slow: servers live through faults of their node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runLives } from './driver-faults.prove.ts';

test('where virsh fails, hangs or lies, a node holds what the rows say in the end, and nothing of a destroyed server', async () => {
  assert.deepEqual(await runLives(null, { n: 12, seed: 1, report: () => {} }), []);
});
