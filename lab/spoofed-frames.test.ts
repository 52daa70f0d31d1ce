/** What the guard of a port drops, where it passes a bridge that the kernel counts. Needs root. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { canRun, KernelRuns } from '#sensor/testing/kernel-runs.ts';
import { type Interface, testFrames } from './testing/forged-frames.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root';
const runs = skip === false ? new KernelRuns(true) : null!;
after(() => runs?.close());

const [own, other] = [11, 12].map((last) => ({
  mac: `52:54:00:00:00:${last}`,
  ipv4: `203.0.113.${last}`,
  ipv6: `2001:db8:113::${last}`,
})) as [Interface, Interface];
runs?.setLocal(
  {
    prefixes: ['203.0.113.0/24', '2001:db8:113::/48'],
    addresses: [],
    owners: [own, other].flatMap(({ mac, ipv4, ipv6 }) =>
      [ipv4, ipv6].map((address) => ({ address, macs: [mac] })),
    ),
  },
  true,
);
let number = 100;

/** What the kernel counts of these frames: reason, address, low byte of the MAC, VLAN, packets, bytes. */
function count(frames: readonly Uint8Array[]) {
  runs.open(++number);
  for (const bytes of frames) runs.run({ bytes });
  const { spoofed, totals, hosts } = runs.read();
  const rows = spoofed.map((row) =>
    [row.reason, row.address, row.low & 255, row.high >>> 16, row.packets, row.bytes].join(' '),
  );
  return { rows: rows.sort(), totals, hosts };
}

test('of what a guard drops, a bridge counts by sender and reason what is of another server; of ordinary frames none', {
  skip,
}, () => {
  const unseen: string[] = [];
  for (const { kind, reason, bytes } of testFrames(own, other).filter((frame) => canRun(frame.bytes))) {
    const { rows } = count([bytes]);
    if (reason === null) assert.deepEqual(rows, [], kind);
    else if (rows.length === 0) unseen.push(`${reason}: ${kind}`);
    const [counted] = rows[0]?.split(' ') ?? [];
    if (counted && ['arp', 'neighbor', 'router', 'dhcp'].includes(reason!))
      assert.equal(counted, reason, kind);
    if (counted && reason !== 'mac') assert.match(rows[0]!, /^\S+ \S* 17 /, kind);
  }
  const byReason = (reason: string) =>
    unseen.filter((one) => one.startsWith(reason)).map((one) => one.slice(reason.length + 2));
  assert.deepEqual(byReason('arp'), [
    ...['an ARP reply for the gateway', 'an ARP probe of another’s address', 'an ARP reply from no address'],
    ...['an ARP operation of RARP', 'ARP of another hardware', 'ARP of another protocol'],
    ...['ARP with other lengths of MACs', 'ARP with other lengths of addresses'],
  ]);
  assert.deepEqual(byReason('neighbor'), [
    ...['an advertisement of the router’s address', 'a solicitation that names another MAC'],
    ...['a duplicate check of another’s address', 'a router solicitation that names another MAC'],
  ]);
  assert.deepEqual([...byReason('router'), ...byReason('dhcp')], ['a renumbering of routers']);
  assert.deepEqual(
    byReason('address').filter((kind) => /another’s|another server’s/.test(kind)),
    ['another server’s link-local address'],
  );
});

test('a server’s packets from the Internet’s addresses count for it, those from private ones and of routers do not', {
  skip,
}, () => {
  const sent = (from: string, mac: string, tags: number[] = []) =>
    ethernet(
      udp(
        { from, fromPort: 9000, to: from.includes(':') ? '2001:db9::7' : '198.51.100.7', toPort: 9 },
        new Uint8Array(20),
      ),
      { source: mac, tags },
    );
  const router = '52:54:00:5e:01:01';
  const mixed = [
    '10.0.0.5',
    '100.64.9.9',
    '169.254.1.1',
    '172.31.0.1',
    '192.168.7.7',
    '240.0.0.1',
    '0.0.0.0',
  ];
  const { rows, hosts } = count([
    ...mixed.map((from) => sent(from, own.mac)),
    ...['fd00::5', 'fe80::1', '::'].map((from) => sent(from, own.mac)),
    ...['198.51.100.9', '2001:db9::9', '203.0.113.77'].map((from) => sent(from, router)),
    sent('203.0.113.77', own.mac),
    ...['198.51.100.9', '8.8.4.4', '2001:db9::9'].map((from) => sent(from, own.mac)),
    sent(other.ipv4, own.mac, [7]),
    sent(other.ipv4, own.mac, [7]),
  ]);
  assert.deepEqual(rows, ['address  17 0 3 164', 'address 203.0.113.12 17 7 2 96']);
  assert.deepEqual([...hosts.keys()], ['203.0.113.77']);
});

test('NET-8.6: spoofed packets that find no row count beside the rows, and rows that are idle make room', {
  skip,
}, () => {
  const many = Array.from({ length: 100 }, (_, i) => `203.0.113.${100 + i}`);
  const owned = [
    { address: own.ipv4, macs: [own.mac] },
    ...many.map((address) => ({ address, macs: [other.mac] })),
  ];
  runs.setLocal({ prefixes: ['203.0.113.0/24'], addresses: [], owners: owned }, true);
  const frames = many.map((from) =>
    ethernet(udp({ from, fromPort: 9000, to: '198.51.100.7', toPort: 9 }, new Uint8Array(20)), {
      source: own.mac,
    }),
  );
  // Those of the tests before are idle four minutes later.
  number += 4;
  count([]);
  for (let round = 0; round < 2; round += 1) {
    const { rows, totals } = count(frames);
    assert.equal(rows.length, 63);
    assert.deepEqual([totals.spoofedPackets, totals.spoofedBytes], [37, 37 * 48]);
    number += 4;
    count([]);
  }
});
