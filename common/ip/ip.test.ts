import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import {
  canonicalAddress,
  formatAddress,
  formatPrefix,
  isGlobalUnicast,
  parseAddress,
  parsePrefix,
  prefixContains,
  prefixesOverlap,
} from './index.ts';

test('canonical text is that of RFC 5952', () => {
  for (const [given, expected] of [
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['::FFFF:192.0.2.1', '::ffff:192.0.2.1'],
    ['1::', '1::'],
    ['192.0.2.1', '192.0.2.1'],
  ] as const) {
    assert.equal(canonicalAddress(given), expected);
  }
});

test('what is no address is refused', () => {
  for (const bad of [
    '',
    '1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '::1::',
    ':::',
    '1:2',
    'fe80::1%eth0',
    '12345::',
    '1.2.3.4:5',
    '::1.2.3.4:5',
    '1:2:3:4:5:1.2.3.4:6',
    '1.2.3.4::',
    '::1.2.3',
    '1:2:3:4:5:6:7:8:9',
    ' ::1',
  ]) {
    assert.equal(parseAddress(bad), null, bad);
  }
});

test('IPv4 text is read as a second implementation reads it', () => {
  const part = fc.oneof(fc.nat(300).map(String), fc.constantFrom('', '00', '01', '1e1', '+1', ' 1', '٣'));
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      const text = parts.join('.');
      const bytes = parseAddress(text);
      // The second implementation also takes shorthand, octal and hexadecimal.
      const isStrict = /^(\d+\.){3}\d+$/.test(text) && !/(^|\.)0\d/.test(text);
      assert.deepEqual(
        bytes && [...bytes],
        isStrict && ipaddr.isValid(text) ? ipaddr.parse(text).toByteArray() : null,
      );
      assert.equal(canonicalAddress(text), bytes ? text : null);
    }),
    { numRuns: 3000, seed: 1 },
  );
});

test('every address survives text and back, and agrees with a second implementation', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
  );
  fc.assert(
    fc.property(bytes, (address) => {
      const text = formatAddress(address);
      assert.deepEqual(parseAddress(text), address);
      assert.deepEqual(ipaddr.parse(text).toByteArray(), [...address]);
    }),
    { seed: 1 },
  );
});

test('a prefix holds its addresses and no others, and host bits are refused', () => {
  const prefix = parsePrefix('203.0.113.64/26')!;
  assert.equal(formatPrefix(prefix), '203.0.113.64/26');
  assert.ok(prefixContains(prefix, parseAddress('203.0.113.127')!));
  assert.ok(!prefixContains(prefix, parseAddress('203.0.113.128')!));
  assert.ok(!prefixContains(parsePrefix('::/0')!, parseAddress('203.0.113.1')!));
  for (const bad of ['203.0.113.65/26', '203.0.113.0/33', '203.0.113.0/', '203.0.113.0/08', '::1/64']) {
    assert.equal(parsePrefix(bad), null, bad);
  }
  assert.ok(prefixesOverlap(parsePrefix('10.0.0.0/8')!, parsePrefix('10.20.0.0/16')!));
  assert.ok(!prefixesOverlap(parsePrefix('10.0.0.0/16')!, parsePrefix('10.1.0.0/16')!));
});

test('NET-2.3: private, CGNAT, loopback, link-local, multicast and documentation addresses are not globally routable', () => {
  for (const global of [
    '1.1.1.1',
    '192.0.0.9',
    '2606:4700::1111',
    '2001:20::1',
    '172.32.0.1',
    '100.128.0.1',
  ]) {
    assert.ok(isGlobalUnicast(parseAddress(global)!), global);
  }
  for (const other of [
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.1.1',
    '224.0.0.1',
    '255.255.255.255',
    '0.1.2.3',
    '198.18.0.1',
    '203.0.113.5',
    '::1',
    'fe80::1',
    'fc00::1',
    'ff02::1',
    '2001:db8::1',
    '2002::1',
    '::ffff:1.1.1.1',
    '64:ff9b::1',
  ]) {
    assert.ok(!isGlobalUnicast(parseAddress(other)!), other);
  }
  assert.ok(isGlobalUnicast(parseAddress('203.0.113.5')!, true));
  assert.ok(isGlobalUnicast(parseAddress('2001:db8::1')!, true));
  assert.ok(!isGlobalUnicast(parseAddress('10.1.2.3')!, true));
});
