import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isRandomizedMac, labelDevice, parseDeviceKey, parseMac } from './device.ts';

const match = { clusterId: 7, serverId: 1, serverName: 'web-1', matchedAtMs: 0, endedAtMs: null };
const plain = {
  mac: '00:1b:21:00:00:01',
  isRandomized: false,
  operatorName: null,
  manufacturer: null,
  match: null,
  archivedAtMs: null,
};

test('NET-2.1.1: operator name before server name before manufacturer before MAC', () => {
  const known = { ...plain, operatorName: 'Core switch', manufacturer: 'Intel', match };
  assert.deepEqual(labelDevice(known), { text: 'Core switch', source: 'operator' });
  assert.deepEqual(labelDevice({ ...known, operatorName: null }), { text: 'web-1', source: 'vm' });
  assert.deepEqual(labelDevice({ ...plain, manufacturer: 'Intel' }), {
    text: 'Intel',
    source: 'manufacturer',
  });
  assert.deepEqual(labelDevice(plain), { text: '00:1b:21:00:00:01', source: 'mac' });
});

test('NET-2.1.1: a destroyed server names its archived device, but not a device that was seen again', () => {
  const ended = { ...plain, match: { ...match, endedAtMs: 1 } };
  assert.equal(labelDevice({ ...ended, archivedAtMs: 1 }).text, 'web-1');
  assert.equal(labelDevice(ended).source, 'mac');
});

test('NET-2.1.4: a locally administered MAC is randomized and is never a name, even with a known prefix', () => {
  for (let octet = 0; octet < 256; octet += 2) {
    const mac = `${octet.toString(16).padStart(2, '0')}:1b:21:00:00:01`;
    assert.equal(isRandomizedMac(mac), (octet & 2) === 2, mac);
    if ((octet & 2) === 0) continue;
    const label = labelDevice({ ...plain, mac, isRandomized: true, manufacturer: null });
    assert.equal(label.source, 'randomized');
    assert.ok(!label.text.includes(mac.slice(0, 8)));
  }
});

test('NET-2.2.9: a device key is a segment and a unicast MAC; other keys match no device', () => {
  assert.deepEqual(parseDeviceKey('br0|52:54:00:AA:BB:CC'), { segment: 'br0', mac: '52:54:00:aa:bb:cc' });
  assert.deepEqual(parseDeviceKey('br0|7|5254.00aa.bbcc'), { segment: 'br0|7', mac: '52:54:00:aa:bb:cc' });
  for (const bad of [
    '',
    '|52:54:00:aa:bb:cc',
    'br0|',
    'br0',
    'br0|52:54:00:aa:bb',
    'br0|53:54:00:aa:bb:cc',
  ]) {
    assert.equal(parseDeviceKey(bad), null, bad);
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      const mac = parseMac(text);
      if (mac !== null) assert.equal(parseMac(mac), mac);
    }),
  );
});
