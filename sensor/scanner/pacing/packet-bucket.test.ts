import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { bucketBurst, PacketBucket } from './packet-bucket.ts';

/** Packets of the fullest ten seconds. */
function fullestWindow(sent: readonly { atMs: number; packets: number }[]): number {
  let [first, sum, most] = [0, 0, 0];
  for (const { atMs, packets } of sent) {
    sum += packets;
    while (sent[first]!.atMs <= atMs - 10_000) {
      sum -= sent[first]!.packets;
      first += 1;
    }
    most = Math.max(most, sum);
  }
  return most;
}

/** A scan of 60 seconds with pauses, which sends as nmap does: after a stop it catches up on all of its time. */
function simulate(seed: number, isHeld: boolean) {
  const random = seededRandom(seed);
  const bucket = new PacketBucket(0);
  const sent: { atMs: number; packets: number }[] = [];
  const fastest = 40 + random() * 60;
  let [atMs, owed, pausedUntil, maySend, holds] = [0, 0, 0, true, 0];
  while (atMs < 60_000) {
    // The thread looks every four milliseconds, now and then late.
    const step = 4 + (random() < 0.01 ? random() * 8 : 0);
    atMs += step;
    owed += 7.82 * step;
    if (atMs > pausedUntil && random() < 0.0015) pausedUntil = atMs + random() * 12_000;
    const isRunning = atMs >= pausedUntil && (maySend || !isHeld);
    const packets = isRunning ? Math.min(owed, fastest * step) : 0;
    owed -= packets;
    sent.push({ atMs, packets });
    const before = maySend;
    maySend = bucket.take(packets, atMs);
    if (before && !maySend) holds += 1;
  }
  return { most: fullestWindow(sent), holds, total: sent.reduce((sum, one) => sum + one.packets, 0) };
}

test('NET-8.3: no ten seconds have more than 80,000 packets, also where a scan catches up on pauses', () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const { most } = simulate(seed, true);
    assert.ok(most <= 80_000, `seed ${seed}: ${most}`);
  }
  assert.ok(
    Array.from({ length: 60 }, (_, seed) => simulate(seed, false).most).some((most) => most > 80_000),
    'without the bucket there would be more',
  );
});

test('NET-8.3: a scan at its own rate is never held up', () => {
  const bucket = new PacketBucket(0);
  for (let atMs = 5; atMs < 120_000; atMs += 5)
    assert.equal(bucket.take(Math.round(7.82 * 5), atMs), true, String(atMs));
});

test('a counter that jumps and a clock that stands still end in a stop, not in a debt without end', () => {
  const bucket = new PacketBucket(0);
  assert.equal(bucket.take(10_000, 0), false);
  assert.equal(bucket.take(0, 1000), false);
  assert.equal(bucket.take(0, 1300), true);
  const full = new PacketBucket(0);
  assert.deepEqual([full.take(bucketBurst - 1, 0), full.take(1, 0)], [true, false], 'the last packet may go');
});
