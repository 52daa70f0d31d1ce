import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '#common/ip/index.ts';
import { JsonBytes, jsonText } from './json-bytes.ts';

function written(write: (json: JsonBytes) => void): string {
  let text = '';
  const json = new JsonBytes((bytes) => {
    text += Buffer.from(bytes).toString();
  });
  write(json);
  json.flush();
  return text;
}

test('addresses are written in the form of RFC 5952', () => {
  const group = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(0xffff) });
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const bytes = new Uint8Array(groups.flatMap((one) => [one >> 8, one & 255]));
      const view = new DataView(bytes.buffer);
      const words = Int32Array.from([0, 1, 2, 3], (word) => view.getInt32(word * 4));
      assert.equal(
        written((json) => json.address(6, words, 0)),
        formatAddress(bytes),
      );
      assert.equal(
        written((json) => json.address(4, words, 0)),
        formatAddress(bytes.subarray(12)),
      );
    }),
    { numRuns: 2000, seed: 1 },
  );
  assert.deepEqual(parseAddress('::'), new Uint8Array(16));
});

test('whole numbers are written up to the largest safe one', () => {
  for (const value of [0, 1, 9, 10, 99, 65_535, 2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER])
    assert.equal(
      written((json) => json.number(value)),
      String(value),
    );
});

test('numbers of every length are written digit by digit', () => {
  fc.assert(
    fc.property(fc.nat(10), fc.nat(2 ** 31 - 1), (digits, value) => {
      const short = value % 10 ** digits;
      assert.equal(
        written((json) => json.number(short)),
        String(short),
      );
    }),
    { numRuns: 2000, seed: 1 },
  );
});

test('constant text is complete at any length and at the end of a piece', () => {
  const parts = Array.from({ length: 20 }, (_, length) => 'abcdefghijklmnopqrst'.slice(0, length));
  const texts = parts.map((part) => jsonText(part));
  const got = written((json) => {
    for (let row = 0; row < 2000; row += 1) {
      for (const text of texts) json.put(text);
      json.number(row).endRow();
    }
  });
  assert.equal(got, Array.from({ length: 2000 }, (_, row) => parts.join('') + row).join(''));
});
