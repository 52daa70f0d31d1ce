// Slow: lives through random clocks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runLives } from './clock-steps.prove.ts';

const n = Number(process.env.SVC_TEST_CLOCK_LIVES ?? 6);

test(`NET-2.4.2, NET-7.1: ${n} lives of a sensor with clock steps, suspends and kills: heard frames are stored once, in their minute`, async () => {
  const { offences, frames } = await runLives(n, 7, null);
  assert.deepEqual(offences, []);
  assert.ok(frames > n * 20);
});
