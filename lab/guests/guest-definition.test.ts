import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { defineGuest, type GuestInput, isSameGuest } from './guest-definition.ts';
import { readGuestFile, writeGuestFile } from './guest-file.ts';

const good = {
  name: 'vm-17',
  mac: '52:54:00:5e:00:11',
  addresses: [{ address: '203.0.113.17' }, { address: '2001:DB8:113::17' }],
} satisfies GuestInput;

test('what a guest leaves out is taken from its network, in canonical spelling', () => {
  assert.deepEqual(defineGuest(good), {
    ...good,
    nics: [],
    guard: 'on',
    image: null,
    rebuild: 0,
    size: null,
    speedMbit: null,
    rescue: { change: 0, image: null },
    drive: { change: 0, iso: null },
    snapshots: [],
    firewall: null,
    power: 'on',
    addresses: [
      { address: '203.0.113.17', prefixLength: 24, gateway: '203.0.113.1' },
      { address: '2001:db8:113::17', prefixLength: 64, gateway: '2001:db8:113::1' },
    ],
  });
});

test('a definition that does not fit the world is refused', () => {
  const bad: Partial<GuestInput>[] = [
    { name: '' },
    { name: 'Web' },
    { name: '-web' },
    { name: 'a'.repeat(33) },
    { name: '../x' },
    { mac: '52:54:00:5E:00:11' },
    { mac: '01:54:00:5e:00:11' },
    { mac: '52:54:00:5e:01:01' },
    { addresses: [] },
    { addresses: [{ address: '203.0.113.1' }] },
    { addresses: [{ address: '198.51.100.7' }] },
    { addresses: [{ address: '10.0.0.1' }] },
    { addresses: [{ address: 'x' }] },
    { addresses: [{ address: '203.0.113.17' }, { address: '203.0.113.17' }] },
    { addresses: [{ address: '203.0.113.17', prefixLength: 25 }] },
    { addresses: [{ address: '203.0.113.17', gateway: '203.0.113.254' }] },
  ];
  for (const part of bad) {
    assert.throws(
      () => defineGuest({ ...good, ...part }),
      (error) => hasCode(error, 'lab.body_invalid'),
      JSON.stringify(part),
    );
  }
});

test('two definitions are one guest, also with another order of addresses or another power state', () => {
  const one = defineGuest(good);
  assert.ok(
    isSameGuest(one, defineGuest({ ...good, addresses: [...good.addresses].reverse(), power: 'off' })),
  );
  assert.ok(!isSameGuest(one, defineGuest({ ...good, addresses: good.addresses.slice(1) })));
});

test('a file of an older version, with `cards` for `nics`, keeps the NICs of its guests', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-guests-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'guests.json');
  const nics = [{ network: 31, mac: '52:56:00:00:00:05', address: '10.20.0.5', prefixLength: 24 }];
  const guest = defineGuest({ ...good, nics });
  const { nics: cards, ...older } = guest;
  writeFileSync(path, JSON.stringify([{ ...older, cards }]));
  assert.deepEqual(readGuestFile(path), [guest]);
  writeGuestFile(path, [guest]);
  assert.deepEqual(readGuestFile(path), [guest]);
});
