import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import type { ObserveFrame } from '#sensor/packet-source/index.ts';
import { CaptureLoop, createWallWatch } from './capture-loop.ts';
import type { FromWorker } from './capture-messages.ts';

const startMs = 1_764_000_000_000;
const frame = Buffer.alloc(60);

/** A loop over a ring that the test drains; each frame has a given timestamp. */
function fixture() {
  const clock = createTestClock(startMs);
  const ring: number[] = [];
  const drains: ((hand: () => void) => Promise<void>)[] = [];
  const said: FromWorker[] = [];
  const loop = new CaptureLoop({
    input: { name: 'eth0', role: 'uplink', share: 1, windowMs: 10_000, windowApplicationsMax: 10 },
    watch: createWallWatch(clock.nowMs, clock.monotonicMs),
    hostTime: createHostTime(clock, clock.monotonicMs, 'boot'),
    say: (message) => said.push(message),
    source: {
      ...{ linkType: 1, settleMs: 250, lingerMs: 0, takeDropped: () => 0 },
      async poll(_, observe: ObserveFrame) {
        const hand = () => {
          for (const second of ring.splice(0)) {
            const atMs = startMs + second * 1000;
            observe(frame, 0, 60, 60, Math.floor(atMs / 1000), (atMs % 1000) * 1e6, -1, 1);
          }
        };
        const drain = drains.shift() ?? (async (now) => now());
        await drain(hand);
      },
    },
  });
  loop.begin({ prefixes: [], addresses: [] });
  return {
    clock,
    ring,
    loop,
    /** Behaviour of the next call of `poll`. */
    drainBy: (drain: (hand: () => void) => Promise<void>) => drains.push(drain),
    minutes: () =>
      said
        .flatMap((message) => (message.kind === 'reports' ? message.reports : []))
        .map(({ minute, reason }) => [
          (minute.minute * 1000 - startMs) / 1000,
          minute.totals.packets,
          reason,
        ]),
    windows: () =>
      said
        .flatMap((message) => (message.kind === 'windows' ? message.windows : []))
        .map((window) => [(window.startedAtMs - startMs) / 1000, window.totals.packets]),
  };
}

test('NET-2.4.2: frames that arrive while a full ring is drained across the end of a minute count in their own minute', async () => {
  const { clock, ring, loop, drainBy, minutes } = fixture();
  await clock.advance(59_000);
  await loop.turn();
  ring.push(59.1);
  drainBy(async (hand) => {
    hand();
    await clock.advance(1500);
    ring.push(59.8, 60.4);
  });
  await loop.turn();
  assert.deepEqual(minutes(), [], 'the rest of the minute is in the ring');
  await loop.turn();
  assert.deepEqual(minutes(), [[0, 2, null]]);
  await clock.advance(60_000);
  await loop.turn();
  await loop.turn();
  assert.deepEqual(minutes(), [
    [0, 2, null],
    [60, 1, null],
  ]);
});

test('NET-2.5: frames that arrive while a full ring is drained count in their own live window', async () => {
  const { clock, ring, loop, drainBy, windows } = fixture();
  await clock.advance(9000);
  await loop.turn();
  drainBy(async (hand) => {
    hand();
    await clock.advance(2000);
    ring.push(9.9);
  });
  await loop.turn();
  await loop.turn();
  assert.deepEqual(windows(), [[0, 1]]);
});

for (const [name, bySeconds] of [
  ['ahead', 3600],
  ['back', -3600],
] as const)
  test(`a clock that is set ${name} while the ring is drained ends the minute at the last old time`, async () => {
    const { clock, ring, loop, drainBy, minutes } = fixture();
    await clock.advance(20_000);
    ring.push(19);
    await loop.turn();
    drainBy(async (hand) => {
      await clock.advance(1500);
      clock.stepWall(bySeconds * 1000);
      hand();
    });
    await loop.turn();
    assert.deepEqual(minutes(), [[0, 1, 'clock_step']]);
    ring.push(bySeconds + 22);
    await clock.advance(40_000);
    await loop.turn();
    await loop.turn();
    assert.deepEqual(minutes().slice(1), [[bySeconds, 1, 'clock_step']]);
  });

test('a stop reports the open minute; before frames count there is none', async () => {
  const { clock, ring, loop, minutes } = fixture();
  await clock.advance(5000);
  ring.push(4);
  await loop.linger();
  loop.finish('sensor_down');
  assert.deepEqual(minutes(), [[0, 1, 'sensor_down']]);
});
