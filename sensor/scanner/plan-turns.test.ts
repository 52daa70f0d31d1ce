import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { PlanTurns } from './scan-service.ts';

/** Seconds that a turn takes, where scans end at these seconds of it. */
async function turnSeconds(
  endsAt: readonly number[],
  waitsForPlace: (second: number) => boolean,
): Promise<number> {
  const clock = createTestClock(0);
  const turns = new PlanTurns(clock);
  const second = () => clock.nowMs() / 1000;
  // The end of an earlier turn's scan is that turn's.
  turns.scanEnded();
  let took: number | null = null;
  const turn = turns
    .wait(() => waitsForPlace(second()), new AbortController().signal)
    .then(() => {
      took = second();
    });
  while (took === null) {
    await clock.advance(500);
    if (endsAt.includes(second())) turns.scanEnded();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await turn;
  return took;
}

test('NET-8.5: a turn lasts ten seconds, and from five on ends with a scan for whose place another waits', async () => {
  const always = () => true;
  assert.equal(await turnSeconds([], always), 10);
  assert.equal(await turnSeconds([0.5], always), 5);
  assert.equal(await turnSeconds([1, 2, 3, 4.5], always), 5);
  assert.equal(await turnSeconds([7.5, 8], always), 7.5);
  assert.equal(await turnSeconds([1, 7.5], () => false), 10);
  // It is asked at the end of a scan alone.
  assert.equal(await turnSeconds([1, 8], (at) => at > 6), 8);
});

test('the end of the sensor ends a turn', async () => {
  for (const afterMs of [2000, 7000]) {
    const clock = createTestClock(0);
    const stopping = new AbortController();
    const turn = new PlanTurns(clock).wait(() => false, stopping.signal);
    await clock.advance(afterMs);
    stopping.abort();
    await turn;
  }
});
