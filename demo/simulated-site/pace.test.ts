import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '#common/clock/index.ts';
import { createPace } from './pace.ts';

/** A clock whose waits take no time of the test, and what was waited. */
function createFastClock(): Clock & { waits: number[] } {
  let atMs = 0;
  const waits: number[] = [];
  return {
    waits,
    nowMs: () => atMs,
    monotonicMs: () => atMs,
    async wait(ms) {
      waits.push(ms);
      // An upload between two pauses takes its time too.
      atMs += ms + 4000;
    },
  };
}

async function pausesOf(idleShares: readonly number[]): Promise<number[]> {
  const clock = createFastClock();
  const times = { idle: 0, all: 0 };
  const pace = createPace(clock, () => ({ ...times }));
  const { signal } = new AbortController();
  await pace.pause(signal);
  for (const share of idleShares) {
    times.idle += share * 1_000;
    times.all += 1_000;
    await pace.pause(signal);
  }
  return clock.waits;
}

test('pauses grow up to eight seconds while the machine is busy, and shrink again when it is idle', async () => {
  const busy = await pausesOf(Array(12).fill(0.1));
  assert.equal(busy[0], 400);
  assert.ok(busy[3]! > busy[2]!);
  assert.equal(busy.at(-1), 8_000);
  const rested = await pausesOf([...Array(12).fill(0.1), ...Array(12).fill(0.6)]);
  assert.equal(rested.at(-1), 400);
});

test('on an idle machine every pause is the shortest', async () => {
  assert.deepEqual(new Set(await pausesOf(Array(6).fill(0.9))), new Set([400]));
});
