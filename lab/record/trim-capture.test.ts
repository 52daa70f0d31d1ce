import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trimCapture } from './trim-capture.ts';

const span = { fromMs: 60_000, toMs: 120_000 };

function tcpFrame(sourcePort: number, destinationPort: number, payload: number): Buffer {
  const frame = Buffer.alloc(14 + 20 + 32 + payload);
  frame.writeUInt16BE(0x0800, 12);
  frame[14] = 0x45;
  frame[23] = 6;
  frame.writeUInt16BE(sourcePort, 34);
  frame.writeUInt16BE(destinationPort, 36);
  frame[34 + 12] = 8 << 4;
  return frame;
}

function capture(records: { atMs: number; frame: Buffer }[]): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt32LE(1, 20);
  const parts = records.map(({ atMs, frame }) => {
    const header = Buffer.alloc(16);
    header.writeUInt32LE(Math.floor(atMs / 1000), 0);
    header.writeUInt32LE((atMs % 1000) * 1000, 4);
    header.writeUInt32LE(frame.length, 8);
    header.writeUInt32LE(frame.length, 12);
    return Buffer.concat([header, frame]);
  });
  return Buffer.concat([head, ...parts]);
}

function lengths(file: Buffer): [captured: number, original: number][] {
  const found: [number, number][] = [];
  for (let at = 24; at < file.length; at += 16 + file.readUInt32LE(at + 8)) {
    found.push([file.readUInt32LE(at + 8), file.readUInt32LE(at + 12)]);
  }
  return found;
}

test('keeps the packets of the span only, both edges as a minute has them', () => {
  const frame = tcpFrame(40_000, 443, 0);
  const whole = capture([59_999, 60_000, 119_999, 120_000].map((atMs) => ({ atMs, frame })));
  assert.equal(trimCapture(whole, span).packets, 2);
});

test('keeps all that a client says and DNS, and of a server the headers, with the original length', () => {
  const frames = [tcpFrame(40_000, 443, 900), tcpFrame(443, 40_000, 900), tcpFrame(53, 40_000, 900)];
  const { file } = trimCapture(capture(frames.map((frame) => ({ atMs: 61_000, frame }))), span);
  assert.deepEqual(lengths(file), [
    [966, 966],
    [66, 966],
    [966, 966],
  ]);
});

test('a file that was cut in the middle of a record ends with the record before', () => {
  const frame = tcpFrame(40_000, 80, 10);
  const whole = capture([61_000, 62_000].map((atMs) => ({ atMs, frame })));
  assert.equal(trimCapture(whole.subarray(0, -1), span).packets, 1);
});
