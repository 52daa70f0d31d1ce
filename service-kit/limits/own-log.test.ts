import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createTestClock } from '#common/clock/index.ts';
import { createOwnLog } from './index.ts';

test('no window of any position holds more events than the capacity, and none is refused below it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 }), async (pauses) => {
      const clock = createTestClock(0);
      const log = createOwnLog({ capacity: 5, windowMs: 1_000, clock });
      const accepted: number[] = [];
      for (const pause of pauses) {
        await clock.advance(pause);
        const now = clock.monotonicMs();
        const within = accepted.filter((at) => at > now - 1_000).length;
        const allowance = await log.take('key');
        assert.equal(allowance.isAllowed, within < 5);
        if (allowance.isAllowed) accepted.push(now);
      }
    }),
    { numRuns: 100, seed: 1 },
  );
});

test('the longest unused key is forgotten when there are too many', async () => {
  const clock = createTestClock(0);
  const log = createOwnLog({ capacity: 1, windowMs: 1_000, clock, keysMax: 2 });
  for (const key of ['a', 'b', 'a', 'c']) await log.take(key);
  assert.equal((await log.take('a')).isAllowed, false);
  assert.equal((await log.take('b')).isAllowed, true, 'b made room for c');
});

test('what is told to wait is long enough', async () => {
  const clock = createTestClock(0);
  const log = createOwnLog({ capacity: 2, windowMs: 60_000, clock });
  await log.take('key');
  await clock.advance(10_500);
  await log.take('key');
  const { event: _, ...refused } = await log.take('key');
  assert.deepEqual(refused, { isAllowed: false, remaining: 0, resetSeconds: 50 });
  await clock.advance(refused.resetSeconds * 1_000);
  assert.equal((await log.take('key')).isAllowed, true);
});

test('API-8.a: no announced wait exceeds the window, for any fraction of the clock', async () => {
  let now = 0;
  const clock = { ...createTestClock(0), monotonicMs: () => now };
  const log = createOwnLog({ capacity: 1, windowMs: 60_000, clock });
  for (const at of [0.1, 84_684.375_239_617_12, ...Array.from({ length: 500 }, (_, i) => i * 613.371_31)]) {
    now = at;
    assert.equal((await log.take(`key ${at}`)).resetSeconds, 60);
  }
});
