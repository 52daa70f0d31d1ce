// Slow: traces many lives of a sensor, call by call.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canTrace } from '#sensor/testing/can-trace.ts';
import { killCycles } from './cycle-kills.prove.ts';
import { failCalls } from './disk-errors.prove.ts';
import { traceOrder } from './write-order.prove.ts';

const kills = Number(process.env.SVC_TEST_KILLS ?? 2);
const failures = Number(process.env.SVC_TEST_DISK_ERRORS ?? 2);
const report = () => {};

test(`killed at ${kills} system calls of a cycle: every minute is the truth or an exact gap, once`, async (t) => {
  if (!canTrace(t)) return;
  // A point that was counted in one cycle may not come in the next: another seed has others.
  for (let seed = 3; seed < 10; seed += 1) {
    const { offences, kills: died } = await killCycles({ n: kills, seed, report }, null);
    assert.deepEqual(offences, []);
    if (died > 0) return;
  }
  assert.fail('no cycle died at its call');
});

test(`NET-7.3: ${failures} failing system calls of the disk: the sensor lives, loses nothing and goes on within 30 s`, async (t) => {
  if (!canTrace(t)) return;
  const { offences } = await failCalls({ n: failures, seed: 4, report }, null);
  assert.deepEqual(offences, []);
});

test("the log's sync has returned before a minute is called collected, an upload leaves or a receipt is called stored", async (t) => {
  if (!canTrace(t)) return;
  assert.deepEqual((await traceOrder(2, null)).offences, []);
});
