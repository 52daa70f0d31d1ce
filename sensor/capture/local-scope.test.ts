import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { formatWords, parseWords } from './address-words.ts';
import { compileLocalScope } from './local-scope.ts';

/** Tests the address once as the first and once as the second; the other address is never local. */
function isLocal(prefixes: string[], address: string): boolean {
  const { version, words } = parseWords(address);
  const scope = compileLocalScope({ prefixes, addresses: [] });
  const first = scope.sides(version, Int32Array.from([...words, 0, 0, 0, 0]), 0);
  const second = scope.sides(version, Int32Array.from([0, 0, 0, 0, ...words]), 0);
  assert.equal(second, first * 2);
  return first === 1;
}

const bytes = fc.oneof(
  fc.uint8Array({ minLength: 4, maxLength: 4 }),
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
  // Addresses with long runs of zeros, the hardest for canonical text.
  fc
    .array(fc.constantFrom(0, 0, 0, 1, 255), { minLength: 16, maxLength: 16 })
    .map((list) => Uint8Array.from(list)),
);

test('text of an address in words is its canonical text, and back', () => {
  fc.assert(
    fc.property(bytes, (address) => {
      const text = formatAddress(address);
      const { version, words } = parseWords(text);
      assert.equal(formatWords(version, ...words), text);
      assert.deepEqual(parseAddress(formatWords(version, ...words)), address);
    }),
    { seed: 1 },
  );
});

test('an address is local exactly when a prefix contains it', () => {
  const scope = fc.array(fc.tuple(fc.nat(7), fc.integer({ min: 20, max: 32 })), { maxLength: 6 });
  fc.assert(
    fc.property(scope, fc.nat(2047), (pairs, tail) => {
      const prefixes = pairs.map(([part, length]) => {
        const base = (0xc0000000 + part * 256) & (-1 << (32 - length));
        return `${formatWords(4, 0, 0, 0, base)}/${length}`;
      });
      const address = formatWords(4, 0, 0, 0, 0xc0000000 + tail);
      const inside = prefixes.some((prefix) => prefixContains(parsePrefix(prefix)!, parseAddress(address)!));
      assert.equal(isLocal(prefixes, address), inside);
    }),
    { seed: 1 },
  );
});

test('IPv6 prefixes and exact addresses are local, neighbours are not', () => {
  const prefixes = ['2001:db8::/48', '2001:db8:0:ffff::/64', '2001:db8:2::7/128'];
  for (const address of ['2001:db8::', '2001:db8:0:ffff:ffff:ffff:ffff:ffff', '2001:db8:2::7']) {
    assert.ok(isLocal(prefixes, address), address);
  }
  for (const address of [
    '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db8:1::',
    '2001:db8:2::6',
    '2001:db8:2::8',
    '32.1.13.184',
  ]) {
    assert.ok(!isLocal(prefixes, address), address);
  }
});

test('text that is not a canonical address or prefix is refused', () => {
  for (const text of ['', '1.2.3', '1.2.3.4/33', '1.2.3.4/', '::1/129', '1:2:3', 'g::', '1::2::3']) {
    assert.throws(
      () => compileLocalScope({ prefixes: [text], addresses: [] }),
      /not (a canonical IP address|an IP prefix)/,
    );
  }
});
