// Slow: kills a sensor that probes, again and again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killProbers } from './kills.prove.ts';

const kills = Number(process.env.SVC_TEST_PROBE_KILLS ?? 3);

test(`kill -9, ${kills} times at random: every committed probe result arrives once and unchanged`, async () => {
  assert.deepEqual(await killProbers({ n: kills, seed: 5, report: () => {} }, null), []);
});
