// Slow: kills a sensor at random moments, again and again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runKills } from './kill.prove.ts';

const kills = Number(process.env.SVC_TEST_KILLS ?? 5);

test(`kill -9, ${kills} times at random: every minute is the truth or an exact gap, none doubled, nothing committed lost`, async (t) => {
  const offences = await runKills(kills, 7, null, (line) => t.diagnostic(line));
  assert.deepEqual(offences, []);
});

test('the same proof notices a sensor that keeps its numbers in memory', async () => {
  // Where a kill falls is chance; what may not happen is that the fault passes every run.
  for (const seed of [7, 8, 9, 10, 11]) {
    if ((await runKills(8, seed, 'numbers_kept_in_memory', () => {})).length > 0) return;
  }
  assert.fail('five runs of kills did not notice the planted fault');
});
