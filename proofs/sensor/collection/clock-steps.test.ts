// Slow: lives through random clocks, and again for each planted fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockPlants } from './clock-plants.ts';
import { runLives } from './clock-steps.prove.ts';

const n = Number(process.env.SVC_TEST_CLOCK_LIVES ?? 6);

test(`NET-2.4.2, NET-7.1: ${n} lives of a sensor with clock steps, suspends and kills: heard frames are stored once, in their minute`, async () => {
  const { offences, frames } = await runLives(n, 7, null);
  assert.deepEqual(offences, []);
  assert.ok(frames > n * 20);
});

test('the same proof detects each planted fault within 60 lives', async () => {
  for (const plant of clockPlants) {
    const { offences } = await runLives(60, 20, plant);
    assert.notDeepEqual(offences, [], plant);
  }
});
