// Slow: kills a sensor that listens, and waits for whole minutes of its clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killListening } from './live-kills.prove.ts';

const kills = Number(process.env.SVC_TEST_LIVE_KILLS ?? 2);

test(`kill -9 of a sensor that listens, ${kills} times: every minute is what was sent or an exact gap, none doubled`, async (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    t.diagnostic('left out: needs root to listen');
    return;
  }
  const { offences, whole } = await killListening(
    { n: kills, seed: 3, report: (line) => t.diagnostic(line) },
    null,
  );
  assert.deepEqual(offences, []);
  assert.ok(whole > 0, 'no minute was whole');
});
