import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { openReplaySource } from './replay-source.ts';

interface RecordedFrame {
  /** Seconds after the start of the recording's first minute. */
  at: number;
  bytes: number;
}

const recordedMinute = 1_700_000_040 - (1_700_000_040 % 60);

/** A pcap file with frames of these sizes and times. */
function recording(t: TestContext, frames: RecordedFrame[]): string {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(65_535, 16);
  head.writeUInt32LE(1, 20);
  const records = frames.map(({ at, bytes }) => {
    const record = Buffer.alloc(16 + bytes);
    record.writeUInt32LE(recordedMinute + Math.floor(at), 0);
    record.writeUInt32LE(Math.round((at % 1) * 1e6), 4);
    record.writeUInt32LE(bytes, 8);
    record.writeUInt32LE(bytes, 12);
    return record;
  });
  const path = join(temporaryFolder(t), 'recording.pcap');
  writeFileSync(path, Buffer.concat([head, ...records]));
  return path;
}

const minute = 1_764_000_000;

/** Plays from `startAt` to `endAt` (seconds after `minute`) in steps. Returns the frames as [second, bytes]. */
function play(path: string, startAt: number, endAt: number, stepSeconds = 0.5): [number, number][] {
  let now = (minute + startAt) * 1000;
  const source = openReplaySource(path, () => now);
  const came: [number, number][] = [];
  for (; now <= (minute + endAt) * 1000; now += stepSeconds * 1000) {
    source.poll(0, (_bytes, _offset, captured, _wire, seconds, nanoseconds) => {
      assert.ok(seconds * 1000 + nanoseconds / 1e6 <= now, 'no frame comes early');
      came.push([seconds + nanoseconds / 1e9 - minute, captured]);
    });
  }
  source.close();
  return came;
}

test('frames keep their second within the minute, are shifted to now, and repeat', (t) => {
  const path = recording(t, [
    { at: 5, bytes: 60 },
    { at: 65.25, bytes: 70 },
  ]);
  assert.deepEqual(play(path, 0, 250), [
    [5, 60],
    [65.25, 70],
    [125, 60],
    [185.25, 70],
    [245, 60],
  ]);
});

test('frames due before the start are left out, as in a live capture', (t) => {
  const path = recording(t, [
    { at: 5, bytes: 60 },
    { at: 30, bytes: 70 },
  ]);
  assert.deepEqual(play(path, 20, 70), [
    [30, 70],
    [65, 60],
  ]);
});

test('a process that was stopped catches up; a clock step starts a new round', (t) => {
  const path = recording(t, [
    { at: 5, bytes: 60 },
    { at: 30, bytes: 70 },
  ]);
  assert.deepEqual(play(path, 0, 80, 40), [
    [5, 60],
    [30, 70],
    [65, 60],
  ]);
  assert.deepEqual(play(path, 1, 7300, 3640), []);
});

test('a file that is not a capture, or has no packet, is explained', (t) => {
  const path = join(temporaryFolder(t), 'note.txt');
  writeFileSync(path, 'hello, this is no capture');
  assert.throws(() => openReplaySource(path), { code: 'capture.no_recording' });
  assert.throws(() => openReplaySource(recording(t, [])), { code: 'capture.no_recording' });
});
