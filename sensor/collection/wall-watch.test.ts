import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { createWallWatch } from './capture-loop.ts';

const startMs = 1_764_000_000_000;

function fixture() {
  const clock = createTestClock(startMs);
  const watch = createWallWatch(clock.nowMs, clock.monotonicMs);
  const capture = createCapture({
    name: 'eth0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: () => null,
    local: { prefixes: [], addresses: [] },
    windowMs: 10_000,
    clampTime: watch.clampTime,
  });
  capture.listeningSince(startMs);
  const frame = Buffer.alloc(60);
  return {
    clock,
    watch,
    capture,
    /** A frame that is stamped now. */
    hear(atMs = clock.nowMs()) {
      capture.observe(frame, 0, 60, 60, Math.floor(atMs / 1000), (atMs % 1000) * 1e6, -1);
    },
  };
}

test('a clock step is reported once, slewing never, for any time between two looks', async () => {
  const { clock, watch } = fixture();
  for (let i = 0; i < 1000; i += 1) {
    await clock.advance(i % 7 === 0 ? 90_000 : 100);
    clock.stepWall(i % 7 === 0 ? 45 : 1);
    assert.equal(watch.look().stepMs, 0);
  }
  for (const stepMs of [2000, -2000, 7_200_000, -315_360_000_000]) {
    clock.stepWall(stepMs);
    assert.equal(watch.look().stepMs, stepMs);
    assert.equal(watch.look().stepMs, 0);
  }
});

for (const [name, stepMs] of [
  ['ahead by half an hour', 1_800_000],
  ['ahead by years', 315_360_000_000],
  ['back by an hour', -3_600_000],
  ['back by years', -315_360_000_000],
] as const)
  test(`frames stamped after a clock step ${name} and before its detection close no minute that never passed`, async () => {
    const { clock, watch, capture, hear } = fixture();
    await clock.advance(20_000);
    watch.look();
    hear();
    clock.stepWall(stepMs);
    await clock.advance(80);
    hear();
    hear();
    assert.deepEqual(capture.closeMinutes(startMs + 20_000), [], 'no minute has ended');
    const { nowMs } = watch.look();
    const [minute, ...others] = capture.closeAll(nowMs - stepMs);
    assert.deepEqual([minute!.minute, minute!.totals.packets, others], [startMs / 1000, 3, []]);
    assert.ok(minute!.observedMs < 60_000);
    capture.listeningSince(nowMs);
    // A frame stamped before and delivered after the step counts in the present.
    hear(startMs + 20_000);
    hear();
    await clock.advance(60_000);
    const [next] = capture.closeMinutes(clock.nowMs());
    assert.deepEqual([next!.minute, next!.totals.packets], [Math.floor(nowMs / 60_000) * 60, 2]);
  });

test('a process that was stopped accepts all frames of the passed time', async () => {
  const { clock, watch, capture, hear } = fixture();
  watch.look();
  await clock.advance(180_000);
  for (const seconds of [10, 70, 130, 175]) hear(startMs + seconds * 1000);
  assert.deepEqual(
    capture.closeMinutes(clock.nowMs()).map((one) => one.totals.packets),
    [1, 1, 2],
  );
});

test('NET-2.5: after a clock step a live window has only its own frames', async () => {
  const { clock, watch, capture, hear } = fixture();
  await clock.advance(32_000);
  watch.look();
  capture.closeWindows(clock.nowMs());
  hear();
  clock.stepWall(-20_000);
  hear();
  const { nowMs, stepMs } = watch.look();
  capture.closeAll(nowMs - stepMs);
  const [before] = capture.closeWindows(nowMs - stepMs);
  assert.deepEqual(
    [before!.startedAtMs, before!.observedMs, before!.totals.packets],
    [startMs + 30_000, 2000, 2],
  );
  capture.listeningSince(nowMs);
  await clock.advance(8000);
  hear(startMs + 15_000);
  const [after] = capture.closeWindows(startMs + 20_000).filter((one) => one.observedMs > 0);
  assert.deepEqual(
    [after!.startedAtMs, after!.observedMs, after!.totals.packets],
    [startMs + 10_000, 8000, 1],
  );
});
