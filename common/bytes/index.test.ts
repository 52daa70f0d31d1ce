import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findByte, matchesText, readInt32, readUint16, readUint32 } from './index.ts';

const bytes = Uint8Array.from([0xff, 0x01, 0x80, 0x02, 0x47, 0x45, 0x74, 0x20]);

test('numbers are read most significant byte first', () => {
  assert.equal(readUint16(bytes, 0), 0xff01);
  assert.equal(readInt32(bytes, 0), 0xff018002 | 0);
  assert.equal(readUint32(bytes, 0), 0xff018002);
});

test('text compares without case and only where it lies whole before the end', () => {
  assert.ok(matchesText(bytes, 4, 8, 'get '));
  assert.ok(!matchesText(bytes, 4, 7, 'get '));
  assert.ok(!matchesText(bytes, 3, 8, 'get '));
});

test('a byte is found inside the range only', () => {
  assert.equal(findByte(bytes, 0x20, 0, 8), 7);
  assert.equal(findByte(bytes, 0x20, 0, 7), -1);
});
