// Slow: kills a sensor at random moments, again and again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runKills } from './kill.prove.ts';

const kills = Number(process.env.SVC_TEST_KILLS ?? 5);

test(`kill -9, ${kills} times at random: every minute is the truth or an exact gap, none doubled, nothing committed lost`, async (t) => {
  const offences = await runKills(kills, 7, null, (line) => t.diagnostic(line));
  assert.deepEqual(offences, []);
});
