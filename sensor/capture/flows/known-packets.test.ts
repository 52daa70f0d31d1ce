// Slow: counts the steps of many packets in an inspected process.
/**
 * Compares the fast path for packets of known flows with the slow path. Two tags without a VLAN before a frame have no
 * meaning, but force the slow path.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { createReading, type MinuteReport } from '#sensor/capture/index.ts';
import { testCapture, testDomain, testMinute, wholeReading } from '#sensor/testing/captures.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';
import { join } from '#sensor/testing/frames.ts';
import { knownPackets } from '#sensor/testing/known-traffic.ts';
import { createMixedCapture } from '#sensor/testing/mixed-capture.ts';
import { generatedSeeds, mutate } from '#sensor/testing/mutations.ts';
import type { CaptureOptions } from '../capture.ts';

interface TimedFrame {
  bytes: Uint8Array;
  /** Bytes on the wire after the captured ones. */
  cut: number;
  seconds: number;
  vlanTci: number;
}

const emptyTags = [0x81, 0, 0, 0, 0x81, 0, 0, 0];
const headerBytes = 80;

/** Mixed traffic over three minutes; every third frame has wrong header bytes or is truncated. */
function frames(seed: number, flows: number): TimedFrame[] {
  const mixed = createMixedCapture(flows, seed);
  const random = seededRandom(seed);
  const seeds = generatedSeeds().filter(({ linkType }) => linkType === 1);
  return Array.from({ length: mixed.frames }, (_, i) => {
    const at = mixed.offsets[i]!;
    let bytes: Uint8Array = mixed.bytes.slice(at, at + mixed.captured[i]!);
    let cut = mixed.wire[i]! - mixed.captured[i]!;
    const kind = random();
    if (kind < 0.1) bytes[Math.floor(random() * Math.min(bytes.length, headerBytes))] = random() * 256;
    else if (kind < 0.2) {
      // Bytes with flags, data offset and lengths, in packets without options.
      const places = [14, 16, 17, 18, 20, 23, 38, 39, 46, 47];
      bytes[places[Math.floor(random() * places.length)]!] = random() * 256;
    } else if (kind < 0.28) {
      const kept = Math.floor(random() * Math.min(bytes.length, headerBytes));
      cut += bytes.length - kept;
      bytes = bytes.slice(0, kept);
    } else if (kind < 0.32) bytes = mutate(seeds, random).bytes;
    const vlanTci = random() < 0.05 ? Math.floor(random() * 3) : -1;
    return { bytes, cut, seconds: Math.floor((i / mixed.frames) * 150), vlanTci };
  });
}

/** The same frame for the slow path. */
function tagged(frame: TimedFrame): TimedFrame {
  const { bytes } = frame;
  // A frame without room for a type stays unchanged: both paths see it as truncated.
  if (bytes.length < 14) return frame;
  return { ...frame, bytes: join(bytes.subarray(0, 12), emptyTags, bytes.subarray(12)) };
}

function minutesOf(taken: readonly TimedFrame[], options: Partial<CaptureOptions>): MinuteReport[] {
  const capture = testCapture(options);
  for (const { bytes, cut, seconds, vlanTci } of taken)
    capture.observe(bytes, 0, bytes.length, bytes.length + cut, testMinute + seconds, 0, vlanTci);
  return capture.closeAll((testMinute + 179) * 1000);
}

function readingOf(taken: readonly TimedFrame[]) {
  const reading = createReading({
    registrableDomain: testDomain,
    local: { prefixes: [], addresses: [] },
    packetsMax: taken.length,
    onAnswer: () => undefined,
  });
  for (const { bytes, cut, seconds } of taken)
    reading.observe(bytes, 0, bytes.length, bytes.length + cut, testMinute + seconds, 1);
  return wholeReading(reading.finish(), []);
}

for (const role of ['uplink', 'bridge'] as const) {
  test(`the fast path counts packets of known flows like the slow path: minutes of a capture (${role})`, () => {
    for (const seed of [1, 2, 3]) {
      // One table that is too small for the flows, and one that holds them all.
      for (const flowsMax of [64, 1024]) {
        const taken = frames(seed, 400);
        const minutes = minutesOf(taken, { role, flowsMax });
        assert.equal(minutes.length, 3);
        assert.ok(minutes.some(({ usage }) => usage.length > 50));
        assert.deepEqual(minutes, minutesOf(taken.map(tagged), { role, flowsMax }));
      }
    }
  });
}

test('the fast path counts packets of known flows like the slow path: everything in a file', () => {
  for (const seed of [4, 5]) {
    const taken = frames(seed, 400);
    const reading = readingOf(taken);
    assert.ok(reading.flows.length > 300);
    assert.deepEqual(reading, readingOf(taken.map(tagged)));
  }
});

test('a packet of a known flow costs few steps, for both IP versions and all protocols', async () => {
  const module = new URL('../../testing/known-traffic.ts', import.meta.url);
  for (const isIpv6 of [false, true]) {
    // The slow path takes a third more.
    const most = isIpv6 ? 30 : 22;
    for (const protocol of ['tcp', 'udp'] as const) {
      const [blocks] = await countBlocks(module, 'knownTraffic', { isIpv6, protocol });
      const each = blocks! / knownPackets;
      assert.ok(
        each > 5 && each < most,
        `${protocol} over IPv${isIpv6 ? 6 : 4}: ${each} blocks of code a packet`,
      );
    }
  }
});
