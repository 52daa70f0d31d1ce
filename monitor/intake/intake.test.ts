// Slow: reads uploads of many megabytes.
// Own process: it measures the memory of its process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { zstdCompressSync } from 'node:zlib';
import { createTestClock } from '#common/clock/index.ts';
import {
  decodedBytesMax,
  type SliceWork,
  sliceBytesMax,
  sliceRowsMax,
} from '#contracts/sensor-api/decode-slices.ts';
import { TelemetryUploadSchema } from '#contracts/sensor-api/telemetry_pb.js';
import { compressUpload, decodeUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { compileBounds } from '#contracts/sensor-api/wire-bounds.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { createIntake } from './index.ts';
import { hostileKinds, makeUploadOf } from './testing/hostile-uploads.ts';

/** An intake that records the work of its slices. */
function watchedIntake() {
  const slices: SliceWork[] = [];
  const clock = createTestClock(0);
  return { slices, clock, intake: createIntake({ clock, onSlice: (work) => slices.push(work) }) };
}

function assertBounded(slices: readonly SliceWork[]): void {
  for (const { rows, bytes } of slices) {
    assert.ok(rows <= sliceRowsMax, `a slice of ${rows} rows`);
    assert.ok(bytes <= sliceBytesMax, `a slice of ${bytes} bytes`);
  }
}

/** An upload of this many captures, each with the maximum of usage rows and many hosts, all different. */
function largeUpload(captures: number, hostsOfCapture = 1000) {
  const hosts = Array.from({ length: hostsOfCapture }, (_, i) =>
    host(
      `10.9.${Math.floor(i / 250)}.${i % 250}`,
      i,
      2 * i,
      `br0|02:00:00:00:${Math.floor(i / 100)}:${i % 100}`,
    ),
  );
  const usage = Array.from({ length: 4096 }, (_, i) =>
    usageRow({ client: hosts[i % 200]!.address, name: `host-${i}.example`, clientBytes: i, serverPort: i }),
  );
  return createSpool().upload(
    Array.from({ length: captures }, (_, i) => captureMinute({ capture: `eth${i}`, hosts, usage })),
  );
}

test('a small body that would decode to millions of messages is refused before decoding', async () => {
  const { intake, slices } = watchedIntake();
  const body = zstdCompressSync(Buffer.alloc(16 * 1024 * 1024, Uint8Array.of(0x2a, 0)));
  assert.ok(body.length < 2048);
  const before = process.resourceUsage().maxRSS;
  await assert.rejects(intake.readUpload(1, body, 'zstd'), {
    code: 'telemetry.malformed',
    message: /minutes holds more than 64 entries/,
  });
  const takenBytes = (process.resourceUsage().maxRSS - before) * 1024;
  assert.ok(takenBytes < 128 * 1024 * 1024, `${takenBytes} bytes were taken`);
  assert.ok(
    slices.reduce((sum, { rows }) => sum + rows, 0) <= 65,
    'the walk ends at the first field above the limit',
  );
});

test('every kind of hostile upload is refused, and no slice exceeds its limits', async () => {
  for (const kind of hostileKinds) {
    const { intake, slices } = watchedIntake();
    const { wire, body, encoding } = makeUploadOf(kind, 2_000_000, () => 0.25);
    const read = wire === 'live' ? intake.readLive(1, body, encoding) : intake.readUpload(1, body, encoding);
    await assert.rejects(read, (error: Error & { code?: string }) => {
      assert.match(error.code ?? error.message, /^telemetry\.(malformed|too_large)$/, kind);
      return true;
    });
    assertBounded(slices);
  }
});

test('a large honest upload is read completely, in many limited slices that yield', async () => {
  const { intake, slices } = watchedIntake();
  const bytes = encodeUpload(largeUpload(14));
  let turns = 0;
  let isRead = false;
  const counting = (async () => {
    for (; !isRead; turns += 1) await setImmediate();
  })();
  const { upload, decodedBytes } = await intake.readUpload(1, compressUpload(bytes), 'zstd');
  isRead = true;
  await counting;
  assert.deepEqual(upload, decodeUpload(bytes));
  assertBounded(slices);
  assert.ok(slices.length > 100 && turns >= slices.length - 1, `${slices.length} slices, ${turns} turns`);
  assert.ok(decodedBytes <= decodedBytesMax);
});

test('an upload that would take more than 64 MiB is refused with the advice to divide it, before decoding', async () => {
  const { intake, slices } = watchedIntake();
  const body = compressUpload(encodeUpload(largeUpload(40, 4000)));
  await assert.rejects(intake.readUpload(1, body, 'zstd'), {
    code: 'telemetry.too_large',
    message: /67108864 bytes when it is decoded. Send fewer rows/,
  });
  assertBounded(slices);
});

test('a sensor with many large uploads delays a large upload of another sensor by few turns, and a small one not at all', async () => {
  const { intake } = watchedIntake();
  const large = compressUpload(encodeUpload(largeUpload(2)));
  const small = compressUpload(encodeUpload(createSpool().upload([captureMinute()])));
  const done: string[] = [];
  const read = (name: string, sensorId: number, body: Uint8Array) =>
    intake.readUpload(sensorId, body, 'zstd').then(() => done.push(name));
  const hostile = Array.from({ length: 12 }, () => read('hostile', 1, large));
  await Promise.all([...hostile, read('large', 2, large), read('small', 3, small)]);
  assert.equal(done.indexOf('small'), 0);
  assert.ok(done.indexOf('large') <= 2, done.join(' '));
});

test('a sensor with unreadable uploads is delayed for a minute; others are not', async () => {
  const { intake, clock } = watchedIntake();
  for (let i = 0; i < 30; i += 1) {
    intake.admit(1)();
    await assert.rejects(intake.readUpload(1, Buffer.from('nonsense'), 'zstd'));
  }
  assert.throws(() => intake.admit(1), { code: 'intake.throttled', retryAfterSeconds: 60 });
  intake.admit(2)();
  clock.advance(59_000);
  assert.throws(() => intake.admit(1), { retryAfterSeconds: 1 });
  clock.advance(1_000);
  intake.admit(1)();
});

test('eight requests of one sensor may be active; the next is told to wait', () => {
  const { intake } = watchedIntake();
  const ends = Array.from({ length: 8 }, () => intake.admit(1));
  assert.throws(() => intake.admit(1), { code: 'intake.throttled', retryAfterSeconds: 1 });
  intake.admit(2)();
  ends[0]!();
  ends[0]!();
  intake.admit(1);
  assert.throws(() => intake.admit(1), { code: 'intake.throttled' });
});

test('a repeated field without a limit is refused when the limits are compiled', () => {
  assert.throws(
    () => compileBounds(TelemetryUploadSchema, {}),
    /TelemetryUpload\.minutes is repeated and has no limit/,
  );
});
