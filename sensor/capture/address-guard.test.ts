import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import {
  clientHello,
  ethernet,
  ip,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';
import type { AddressOwners } from './address-guard.ts';
import type { Packet } from './decode/packet.ts';
import type { MinuteReport } from './reports/minute-report.ts';

const mac = (n: number) => `52:54:00:00:00:0${n}`;
const router = '00:00:5e:00:01:01';
const own = { 1: ['192.0.2.1', '2001:db8::1'], 2: ['192.0.2.2', '2001:db8::2'], 3: ['192.0.2.3'] };
const owners: AddressOwners[] = Object.entries(own).flatMap(([n, addresses]) =>
  addresses.map((address) => ({ address, macs: [mac(Number(n))] })),
);
const local = { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] };
const guarded = (given = owners) => testCapture({ role: 'bridge', local: { ...local, owners: given } });
const endMs = (testMinute + 60) * 1000;

const close = (capture: ReturnType<typeof testCapture>) => capture.closeMinutes(endMs)[0]!;
const ofAddress = ({ hosts }: MinuteReport, address: string) => {
  const host = hosts.find((one) => one.isLocal && one.address === address);
  return host && [host.rxBytes, host.txBytes, host.packets, host.deviceKey];
};
const ends = (from: string, to: string): SegmentOptions => ({ from, to, fromPort: 40_000, toPort: 443 });

for (const [victim, peer, remote, header] of [
  ['192.0.2.2', '192.0.2.3', '198.51.100.9', 20],
  ['2001:db8::2', '2001:db8::3', '2001:db9::9', 40],
] as const) {
  test(`NET-2.4.2: what another MAC sends from ${victim} is not traffic of that address`, () => {
    const capture = guarded();
    const outbound = udp(ends(victim, remote), new Uint8Array(100));
    const answer = udp(reverse(ends(victim, remote)), new Uint8Array(50));
    const length = header + 8;
    // Of one flow, before, between and after the owner's own packets.
    for (const source of [mac(1), mac(2), mac(1), mac(2), mac(2), mac(1)])
      offer(capture, ethernet(outbound, { source }));
    offer(capture, ethernet(answer, { source: router }));
    // To another server it is traffic of the receiver alone.
    offer(capture, ethernet(udp(ends(victim, peer), new Uint8Array(7)), { source: mac(1) }));
    const minute = close(capture);
    assert.deepEqual(ofAddress(minute, victim), [length + 50, 3 * (length + 100), 4, `br0|${mac(2)}`]);
    assert.deepEqual(ofAddress(minute, peer), [length + 7, 0, 1, '']);
    assert.deepEqual(minute.spoofed, [
      { deviceKey: `br0|${mac(1)}`, address: victim, bytes: 4 * length + 307, packets: 4 },
    ]);
    assert.equal(minute.totals.ipBytes, 8 * length + 657);
    assert.equal(minute.totals.detailTruncated, 0);
    const rows = minute.usage.map((row) => [
      row.client,
      row.server,
      row.direction,
      row.clientBytes,
      row.serverBytes,
    ]);
    assert.deepEqual(rows.sort(), [
      [victim, peer, 'inbound', length + 7, 0],
      [victim, remote, 'outbound', 3 * (length + 100), length + 50],
    ]);
  });
}

test('NET-2.2.3: a spoofed hello names no application of the address, and a spoofed end closes no connection', () => {
  const [client, server] = ['192.0.2.2', '198.51.100.9'];
  const frames = (source: string, name: string) => [
    ethernet(tcp(ends(client, server), Tcp.syn, 1), { source }),
    ethernet(tcp(reverse(ends(client, server)), Tcp.syn | Tcp.ack, 1), { source: router }),
    ethernet(tcp(ends(client, server), Tcp.ack, 2, clientHello({ host: name })), { source }),
  ];
  const reset = ethernet(tcp(ends(client, server), Tcp.reset | Tcp.ack, 900), { source: mac(1) });
  const played = (all: Uint8Array[]) => {
    const capture = guarded();
    for (const frame of all) offer(capture, frame);
    return close(capture);
  };
  const honest = frames(mac(2), 'www.example.com');
  const [plain, attacked] = [
    played(honest),
    played([...frames(mac(1), 'evil.example.net').filter((_, i) => i !== 1), reset, ...honest, reset]),
  ];
  assert.equal(plain.usage[0]!.name, 'example.com');
  assert.deepEqual(attacked.usage, plain.usage);
  assert.deepEqual(ofAddress(attacked, client), ofAddress(plain, client));
});

test('a spoofed packet does not reach the detector as the owner’s; as its receiver’s it does', () => {
  const capture = guarded();
  const told: string[] = [];
  capture.setTap({
    packet: (p: Packet, packets, _, exchange) =>
      void told.push(`${p.source3 >>> 0} ${p.target3 & 255} ${packets} ${exchange}`),
    wantsFlow: () => true,
    flow: () => void told.push('flow'),
    turn: () => {},
  });
  const packet = udp(ends('192.0.2.2', '192.0.2.3'), new Uint8Array(9));
  for (let i = 0; i < 3; i += 1) offer(capture, ethernet(packet, { source: mac(1) }));
  assert.deepEqual(told, ['0 3 1 0', '0 3 1 0', '0 3 1 0']);
});

test('a MAC of two servers sends for both, an address of two for each, and others are not judged', () => {
  const shared = [
    { address: '192.0.2.1', macs: [mac(1)] },
    { address: '192.0.2.2', macs: [mac(1)] },
    { address: '192.0.2.3', macs: [mac(3), mac(4)] },
  ];
  const capture = guarded(shared);
  const sent = (from: string, source: string) =>
    offer(capture, ethernet(udp(ends(from, '198.51.100.9'), new Uint8Array(2)), { source }));
  for (const from of ['192.0.2.1', '192.0.2.2']) sent(from, mac(1));
  for (const source of [mac(3), mac(4)]) sent('192.0.2.3', source);
  sent('192.0.2.7', mac(1));
  assert.deepEqual(close(capture).spoofed, []);
  // An uplink sees the host's own MAC on everything that leaves, so it judges nothing.
  const uplink = testCapture({ local: { ...local, owners } });
  offer(uplink, ethernet(udp(ends('192.0.2.2', '198.51.100.9'), new Uint8Array(2)), { source: router }));
  assert.deepEqual([close(uplink).spoofed, uplink.closeAll(endMs)[0]?.spoofed ?? []], [[], []]);
});

test('an address that moves to another server is that one’s from the next plan on; a server that moves keeps its MAC', () => {
  const capture = guarded();
  const send = (source: string) =>
    offer(capture, ethernet(udp(ends('192.0.2.2', '198.51.100.9'), new Uint8Array(2)), { source }));
  send(mac(2));
  capture.setLocal({ ...local, owners: owners.filter(({ address }) => address !== '192.0.2.2') });
  send(mac(3));
  capture.setLocal({ ...local, owners: [{ address: '192.0.2.2', macs: [mac(3)] }] });
  send(mac(3));
  send(mac(2));
  const minute = close(capture);
  assert.deepEqual(ofAddress(minute, '192.0.2.2')!.slice(0, 3), [0, 90, 3]);
  assert.deepEqual(minute.spoofed, [
    { deviceKey: `br0|${mac(2)}`, address: '192.0.2.2', bytes: 30, packets: 1 },
  ]);
});

test('NET-8.6: any number of spoofing MACs takes 64 rows, and every byte is in one', () => {
  const capture = guarded();
  const packet = udp(ends('192.0.2.2', '198.51.100.9'), new Uint8Array(2));
  for (let i = 0; i < 300; i += 1) {
    const source = `06:00:00:00:0${i >> 8}:${(i & 255).toString(16).padStart(2, '0')}`;
    offer(capture, ethernet(packet, { source, tags: [7] }));
  }
  const { spoofed } = close(capture);
  assert.equal(spoofed.length, 64);
  assert.equal(spoofed[0]!.deviceKey, 'br0.7|06:00:00:00:00:00');
  assert.deepEqual(spoofed.at(-1), { deviceKey: '', address: '', bytes: 30 * 237, packets: 237 });
});

/** Random packets of three servers, a router and strangers, some of them from an address of another, whole and in fragments. */
function randomSchedule(seed: number) {
  const random = seededRandom(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
  const four = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.99', '198.51.100.1', '198.51.100.2'];
  const six = ['2001:db8::1', '2001:db8::2', '2001:db8::99', '2001:db9::1'];
  return Array.from({ length: 120 }, () => {
    const family = random() < 0.5 ? four : six;
    const from = pick(family);
    const to = pick(family);
    const data = new Uint8Array(8 + Math.floor(random() * 4) * 8);
    const segment = { from, to, fromPort: pick([53, 443, 40_000]), toPort: pick([53, 443, 40_001]) };
    const kind = Math.floor(random() * 4);
    const fragment = { from, to, protocol: 17, id: Math.floor(random() * 3) };
    const payload =
      kind === 0
        ? tcp(segment, pick([Tcp.syn, Tcp.ack, Tcp.reset, Tcp.syn | Tcp.ack]), Math.floor(random() * 9), data)
        : kind === 1 && family === four
          ? ip(data, { ...fragment, offset: pick([0, 8, 16]), more: random() < 0.5 })
          : udp(segment, data);
    return { from, to, source: pick([mac(1), mac(2), mac(3), router]), payload };
  });
}

test('NET-2.4.2: over random schedules each address has the bytes that its owner sent and that it received, and no others', () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const schedule = randomSchedule(seed);
    const sums = new Map<string, [rx: number, tx: number, packets: number]>();
    let spoofedBytes = 0;
    const capture = guarded();
    for (const [i, { from, to, source, payload }] of schedule.entries()) {
      offer(capture, ethernet(payload, { source }), (i * 50) / schedule.length);
      const isLocal = (address: string) => /^(192\.0\.2\.|2001:db8::)/.test(address);
      const macs = owners.find(({ address }) => address === from)?.macs;
      const isSpoofed = macs !== undefined && !macs.includes(source);
      if (isSpoofed) spoofedBytes += payload.length;
      for (const address of new Set([from, to])) {
        const isSender = address === from && !isSpoofed;
        if (!isLocal(address) || !(isSender || address === to)) continue;
        const [rx, tx, packets] = sums.get(address) ?? [0, 0, 0];
        const received = address === to ? payload.length : 0;
        sums.set(address, [rx + received, tx + (isSender ? payload.length : 0), packets + 1]);
      }
    }
    const minute = close(capture);
    const seen = minute.hosts.filter((host) => host.isLocal);
    const counted = seen.map((host) => [host.address, [host.rxBytes, host.txBytes, host.packets]] as const);
    assert.deepEqual(new Map(counted), sums, `seed ${seed}`);
    const spoofed = minute.spoofed.reduce((sum, row) => sum + row.bytes, 0);
    assert.equal(spoofed, spoofedBytes, `seed ${seed}`);
  }
});
