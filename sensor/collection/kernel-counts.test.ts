import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { attachCounter, detachCounter, openCounter, preparePins } from '#sensor/kernel/attachment.ts';
import { ethernetFrame, openFrameSender, udp4 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { createKernelCounts } from './kernel-counts.ts';

const minuteTicks = 120;
/** More than have room. */
const addresses = 17_000;

test('a minute has the kernel’s totals, addresses and spoofed traffic where its program is attached, whenever that was; what was not seen is truncated', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  t.after(() => {
    detachCounter(here);
    spawnSync('ip', ['link', 'del', here]);
    preparePins([], { uid: 0, gid: 0 });
  });
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
  }
  const source = { kind: 'live', interfaceName: here, ringMiB: 2 } as const;
  const counts = createKernelCounts({
    captures: [{ name: here, role: 'bridge', source }],
    reporter: silentReporter,
  });
  const tickMinute = async () => {
    for (let i = 0; i < minuteTicks; i += 1) await counts.tick();
  };
  await counts.start();
  const [server, neighbour, stranger] = ['02:00:00:00:00:0a', '02:00:00:00:00:0b', '02:00:00:00:00:0c'];
  const owners = [
    { address: '203.0.113.7', macs: [server] },
    { address: '192.0.2.30', macs: [neighbour] },
  ];
  const local = { prefixes: ['192.0.2.0/24', '203.0.113.0/24'], addresses: [], owners };
  counts.follow(local, null, true);
  assert.match(counts.whyNot(here)!, /No counting program/);

  preparePins([here], { uid: 0, gid: 0 });
  attachCounter(here);
  await tickMinute();
  assert.equal(counts.whyNot(here), null);
  const minute = Math.floor(Date.now() / 60_000) * 60;
  assert.equal(counts.count(here, minute, null, null), null, 'it did not count all of this minute');

  // As if it had counted for ten minutes, and the minute of the frames were the open one or the one before.
  const { counter } = openCounter(here);
  counter.change({ since: process.hrtime.bigint() - 600_000_000_000n });
  counter.close();
  const sender = openFrameSender(there);
  for (const host of [10, 11, 11])
    sender.send(ethernetFrame(0x0800, udp4('203.0.113.7', `192.0.2.${host}`, 100)));
  for (const source of ['192.0.2.30', '192.0.2.30', '198.51.100.9'])
    sender.send(ethernetFrame(0x0800, udp4(source, '8.8.4.4', 100)));
  sender.close();
  const seen = { ...sampleMinute(minute, 128), capture: here };
  const [known] = seen.hosts;
  seen.totals = { ...seen.totals, ipPackets: 1, detailTruncated: 0, kernelDropped: 2 };
  // The ring has a packet that the kernel had in the minute before, and one of an address that is local no more.
  seen.hosts = [
    {
      ...{ ...known!, address: '192.0.2.10', deviceKey: 'br0|a' },
      ownScan: { rxBytes: 200, txBytes: 40, packets: 3 },
    },
    { ...known!, address: '192.0.2.12' },
    { ...known!, address: '198.51.100.7' },
  ];
  const ofStranger = { deviceKey: `${here}|${stranger}`, address: '192.0.2.30', bytes: 50, packets: 5 };
  // The engine had no row for one of the server's packets, and for two of others.
  seen.spoofed = [ofStranger, { deviceKey: '', address: '', bytes: 328, packets: 3 }];
  seen.spoofed.push({ ...ofStranger, deviceKey: `${here}|${server}`, bytes: 128, packets: 1 });
  const parts = [minute, minute + 60].map((one) => counts.count(here, one, { ...seen, minute: one }, null));
  const counted = parts.find((one) => one !== null && one.totals.packets > 0)!;
  assert.deepEqual(
    [
      counted.totals.ipPackets,
      counted.totals.ipBytes,
      counted.totals.detailTruncated,
      counted.totals.kernelDropped,
    ],
    [6, 6 * 128, 5, 0],
  );
  assert.deepEqual(
    counted.hosts
      .map(({ address, rxBytes, packets, deviceKey }) => [address, rxBytes, packets, deviceKey] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
    [
      ['192.0.2.10', 128, 1, 'br0|a'],
      ['192.0.2.11', 256, 2, ''],
      ['198.51.100.7', 128, 9, ''],
      ['203.0.113.7', 0, 3, ''],
    ],
  );
  const scanned = counted.hosts.filter(({ ownScan }) => ownScan !== undefined);
  assert.deepEqual(
    scanned.map((row) => [row.address, row.ownScan]),
    [['192.0.2.10', { rxBytes: 128, txBytes: 0, packets: 1 }]],
    'own scans are a part of what the address exchanged',
  );
  const { address } = ofStranger;
  const ofServer = { deviceKey: `${here}|${server}`, address, bytes: 256, packets: 2 };
  const ofNoServer = { ...ofServer, address: '', bytes: 128, packets: 1 };
  assert.deepEqual(
    counted.spoofed!.sort((a, b) => b.bytes - a.bytes),
    [ofServer, { deviceKey: '', address: '', bytes: 200, packets: 2 }, ofNoServer, ofStranger],
  );
  const rest = counts.count(here, counted.minute, null, counted)!;
  assert.deepEqual([rest.totals.ipBytes, rest.hosts, rest.spoofed], [0, [], undefined]);
  counts.follow(local, null);
  const { spoofed } = counts.count(here, counted.minute, null, null)!;
  assert.deepEqual(spoofed, [ofServer], 'for an older monitor');

  // More addresses than have room: what of them was not seen is said to be lost.
  counts.follow({ prefixes: ['10.0.0.0/8'], addresses: [] }, null);
  const many = openFrameSender(there);
  for (let i = 0; i < addresses; i += 1)
    many.send(ethernetFrame(0x0800, udp4('203.0.113.7', `10.1.${i >> 8}.${i & 255}`, 0)));
  many.close();
  const full = [0, 60].map((later) => counts.count(here, minute + later, null, null)!);
  const found = full.flatMap(({ hosts }) => hosts.filter(({ address: one }) => one.startsWith('10.1.')));
  const lost = full.reduce((sum, { totals }) => sum + totals.kernelDropped, 0);
  assert.ok(lost > 0);
  assert.equal(found.length + lost, addresses);
  const unseen = { ...seen, minute: full[1]!.totals.kernelDropped > 0 ? minute + 60 : minute };
  const dropped = counts.count(here, unseen.minute, null, null)!.totals.kernelDropped;
  unseen.hosts = [{ ...known!, address: '10.1.255.255', packets: 7 }];
  assert.equal(counts.count(here, unseen.minute, unseen, null)!.totals.kernelDropped, dropped - 7);

  detachCounter(here);
  await tickMinute();
  assert.match(counts.whyNot(here)!, /No counting program/);
  assert.equal(counts.count(here, minute, null, null), null);
});
