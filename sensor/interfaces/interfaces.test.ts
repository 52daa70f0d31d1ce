import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { type HostInventory, interfacesMax, neighboursMax } from '#contracts/sensor-api/telemetry.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { assembleInventory, createInterfaces } from './index.ts';
import type { KernelTables, LinkRow } from './read-files.ts';

const link = (index: number, name: string, more: Partial<LinkRow> = {}): LinkRow => ({
  index,
  name,
  mac: `02:00:00:00:00:${index.toString(16).padStart(2, '0')}`,
  kind: '',
  isUp: true,
  mtu: 1500,
  master: 0,
  parent: 0,
  vlan: 0,
  ...more,
});

const tables: KernelTables = {
  links: [
    link(2, 'eth0'),
    link(3, 'br0', { kind: 'bridge' }),
    link(4, 'tap1', { master: 3 }),
    link(5, 'br0v77', { kind: 'vlan', parent: 3, vlan: 77 }),
    link(6, 'guest', { kind: 'macvtap', mac: '52:54:00:00:00:66' }),
  ],
  addresses: [{ index: 2, address: '198.51.100.2/24' }],
  neighbours: [
    { index: 2, mac: '52:54:00:00:00:01', address: '198.51.100.1', vlan: 0, isRouter: false },
    { index: 5, mac: '52:54:00:00:00:02', address: '192.0.2.7', vlan: 0, isRouter: false },
    { index: 3, mac: '52:54:00:00:00:03', address: '', vlan: 1, isRouter: false },
    { index: 3, mac: '52:54:00:00:00:02', address: '', vlan: 77, isRouter: false },
    { index: 3, mac: '02:00:00:00:00:04', address: '', vlan: 1, isRouter: false },
  ],
  gateways: ['198.51.100.1'],
};

test('neighbours are on the segments of device keys; the host is not a neighbour, and gateways are routers', () => {
  const inventory = assembleInventory(tables, 1000, () => 1);
  assert.deepEqual(inventory.neighbours, [
    { segment: 'eth0', mac: '52:54:00:00:00:01', address: '198.51.100.1', isRouter: true },
    { segment: 'br0.77', mac: '52:54:00:00:00:02', address: '192.0.2.7', isRouter: false },
    { segment: 'br0', mac: '52:54:00:00:00:03', address: '', isRouter: false },
  ]);
  const shown = inventory.interfaces.map((one) => [one.name, one.master, one.parent, one.addresses.join()]);
  assert.deepEqual(shown, [
    ['eth0', '', '', '198.51.100.2/24'],
    ['br0', '', '', ''],
    ['tap1', 'br0', '', ''],
    ['br0v77', '', 'br0', ''],
    ['guest', '', '', ''],
  ]);
});

test('an inventory stays within its limits and counts what it leaves out', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
  const inventory = assembleInventory(
    {
      links: many(interfacesMax + 3).map((index) => link(index, `if${index}`, { mac: '' })),
      addresses: many(100).map((index) => ({ index: 1, address: `10.0.0.${index}/8` })),
      neighbours: many(neighboursMax + 5).map((index) => ({
        index: 1,
        mac: `52:54:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`,
        address: '',
        vlan: 0,
        isRouter: false,
      })),
      gateways: [],
    },
    0,
    () => 0,
  );
  assert.deepEqual(
    [inventory.interfaces.length, inventory.interfacesLeftOut, inventory.interfaces[0]!.addresses.length],
    [interfacesMax, 3, 64],
  );
  assert.deepEqual([inventory.neighbours.length, inventory.neighboursLeftOut], [neighboursMax, 5]);
});

test('NET-2.2.9: MACs of the host and of its routers are foreign, those of macvtap guests are not; old inventories expire', async () => {
  const clock = createTestClock(0);
  let answer: () => Promise<KernelTables> = async () => tables;
  const interfaces = createInterfaces({ clock, reporter: silentReporter, read: () => answer() });
  await interfaces.start();
  const foreign = interfaces.foreignMacs();
  assert.ok(foreign.has('02:00:00:00:00:03') && foreign.has('52:54:00:00:00:01'));
  assert.ok(!foreign.has('52:54:00:00:00:66') && !foreign.has('52:54:00:00:00:02'));
  answer = async () => {
    throw new Error('no kernel');
  };
  await clock.advance(200_000);
  assert.equal(interfaces.ready()?.observedAtMs, 0);
  await clock.advance(200_000);
  assert.equal(interfaces.ready(), null, 'NET-2.7.8: five minutes');
  await interfaces.stop();
});

test("the kernel's sockets and its files give the same links, addresses and IPv4 neighbours", (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    return t.diagnostic('left out: needs root for a network namespace');
  }
  const ns = uniqueName();
  const ip = (...words: string[]) => execFileSync('ip', ['-n', ns, ...words]);
  execFileSync('ip', ['netns', 'add', ns]);
  t.after(() => spawnSync('ip', ['netns', 'del', ns]));
  ip('link', 'add', 'br0', 'type', 'bridge');
  ip('link', 'add', 'va', 'type', 'veth', 'peer', 'name', 'vb');
  ip('link', 'set', 'va', 'master', 'br0');
  for (const name of ['br0', 'va', 'vb']) ip('link', 'set', name, 'up');
  ip('addr', 'add', '10.1.0.1/24', 'dev', 'br0');
  ip('neigh', 'add', '10.1.0.9', 'lladdr', '52:54:00:00:00:09', 'dev', 'br0');
  ip('neigh', 'add', '2001:db8::9', 'lladdr', '52:54:00:00:00:0b', 'dev', 'br0');
  ip('neigh', 'add', '10.1.0.8', 'lladdr', '52:54:00:00:00:0c', 'dev', 'br0', 'nud', 'noarp');
  ip('route', 'add', 'default', 'via', '10.1.0.9');
  execFileSync('bridge', ['-n', ns, 'fdb', 'add', '52:54:00:00:00:0a', 'dev', 'va', 'master', 'dynamic']);
  const probe = fileURLToPath(new URL('../testing/interfaces-probe.ts', import.meta.url));
  const said = execFileSync('ip', ['netns', 'exec', ns, process.execPath, probe], { encoding: 'utf8' });
  const { sockets, files } = JSON.parse(said) as { sockets: HostInventory; files: HostInventory };
  const plain = (inventory: HostInventory) => ({
    interfaces: inventory.interfaces.map(({ kind, ...one }) => ({
      ...one,
      isBridge: kind === 'bridge',
      addresses: one.addresses.filter((address) => !address.startsWith('fe80')).sort(),
    })),
    neighbours: inventory.neighbours.filter((one) => one.address.includes('.')),
  });
  assert.deepEqual(plain(sockets), plain(files));
  const told = sockets.neighbours
    .map((one) => `${one.segment} ${one.mac} ${one.address} ${one.isRouter}`)
    .sort();
  assert.deepEqual(told, [
    'br0 52:54:00:00:00:09 10.1.0.9 true',
    'br0 52:54:00:00:00:0a  false',
    'br0 52:54:00:00:00:0b 2001:db8::9 false',
  ]);
});
