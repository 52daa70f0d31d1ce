import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createPacer, type FloodProgress, flood } from './flood.ts';

interface Turn {
  atMs: number;
  count: number;
}

/** Runs a flood on a clock of its own; `send` says how much of each turn the link takes. */
async function runFlood(perSecond: number, seconds: number, send = (count: number) => count) {
  const clock = createTestClock(0);
  const turns: Turn[] = [];
  const progress: FloodProgress = { sent: 0, elapsedMs: 0 };
  const stopping = new AbortController();
  const over = flood(
    {
      clock,
      perSecond,
      seconds,
      signal: stopping.signal,
      send(count) {
        turns.push({ atMs: clock.nowMs(), count });
        return send(count);
      },
    },
    progress,
  );
  return { clock, turns, progress, over, stopping };
}

for (const perSecond of [1, 7, 999, 25_000, 200_000]) {
  test(`lab attack: ${perSecond} packets/s are paced evenly by the clock, and none is missing or over`, async () => {
    const run = await runFlood(perSecond, 3);
    await run.clock.advance(3000);
    await run.over;
    assert.deepEqual(run.progress, { sent: perSecond * 3, elapsedMs: 3000 });
    const most = Math.ceil(perSecond / 1000);
    assert.ok(
      run.turns.every((turn) => turn.count <= most),
      'no millisecond has more than its part',
    );
    for (let from = 0; from < 3000; from += 100) {
      const inside = run.turns.filter((turn) => turn.atMs > from && turn.atMs <= from + 100);
      const sum = inside.reduce((total, turn) => total + turn.count, 0);
      assert.ok(Math.abs(sum - perSecond / 10) <= 1, `${sum} packets in the 100 ms after ${from} ms`);
    }
  });
}

test('lab attack: what a stall left unsent is forfeited, but for 20 ms of the rate and one packet', () => {
  let nowMs = 0;
  const pacer = createPacer({ monotonicMs: () => nowMs }, 10_000);
  nowMs = 5000;
  assert.equal(pacer.take(), 201);
  assert.equal(pacer.take(), 0);
  nowMs = 5001;
  assert.equal(pacer.take(), 10);
});

test('lab attack: packets that the link did not take are not counted as sent', async () => {
  const run = await runFlood(1000, 1, (count) => Math.floor(count / 2));
  await run.clock.advance(1000);
  await run.over;
  assert.equal(run.progress.sent, 0);
  const half = await runFlood(2000, 1, (count) => Math.floor(count / 2));
  await half.clock.advance(1000);
  await half.over;
  assert.equal(half.progress.sent, 1000);
});

test('lab attack: a stopped flood sends nothing more', async () => {
  const run = await runFlood(1000, 600);
  await run.clock.advance(50);
  run.stopping.abort();
  await run.over;
  const { sent } = run.progress;
  assert.equal(sent, 50);
  await run.clock.advance(1000);
  assert.equal(run.progress.sent, sent);
});
