import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPlainLine, oneLine } from './index.ts';

test('a line has no control characters, no line breaks and nothing that turns its direction', () => {
  for (const plain of ['Müller & Söhne', '日本語', 'שלום', 'a  b', '👩‍👧'])
    assert.deepEqual([isPlainLine(plain), oneLine(plain)], [true, plain]);
  for (const [text, line] of [
    ['a\u202eb', 'a b'],
    ['a\r\n\tb', 'a b'],
    ['\u2066a\u2069', 'a'],
    ['a\u2028b\u0000', 'a b'],
  ] as const)
    assert.deepEqual([isPlainLine(text), oneLine(text)], [false, line]);
});
