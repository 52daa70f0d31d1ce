import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { createThresholdBook, defaultThresholds, type Thresholds } from '#sensor/detector/index.ts';
import { dividedThresholds } from '#sensor/testing/attack-traffic.ts';
import { ethernet, ip, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { AttackCounters } from './attack-counters.ts';
import { Bin, binLength, Direction, FrameFeed, Kind } from './index.ts';
import { pairsMax } from './pair-table.ts';

const limitsOf = (thresholds: Thresholds) =>
  createThresholdBook(thresholds).sets.map(({ hostLimits }) => hostLimits);
const highLimits = limitsOf(defaultThresholds);
const local = '192.0.2.7';
const localWord = (192 << 24) | (2 << 8) | 7;
const remote = '198.51.100.9';
const data = new Uint8Array(100);

/** Counters of one protected address that are fed with IP packets. */
function create(limits = highLimits) {
  // A key of its own for each run would now and then put nine of two thousand pairs into one bucket of eight.
  const key = [0x2b7e1516, 0x28aed2a6] as const;
  const counters = new AttackCounters({ scope: { prefixes: [], addresses: [local] }, limits, key });
  const feed = new FrameFeed(counters);
  let second = 0;
  return {
    counters,
    open(next: number) {
      second = next;
      counters.open(second);
    },
    send(packet: Uint8Array, times = 1) {
      const frame = ethernet(packet);
      for (let i = 0; i < times; i += 1) feed.observe(frame, 0, frame.length, frame.length, 1, 1, second);
    },
    /** The packets of each kind in a second. */
    counts(at: number, direction: number = Direction.inbound): Float64Array {
      const counts = new Float64Array(binLength);
      counters.finish();
      counters.hosts.addBin(counters.hosts.find(4, 0, 0, 0, localWord), direction, at, counts);
      return counts;
    },
  };
}

/** A datagram of a tunnel whose directions have source ports of their own. */
const tunnel = (from: string, to: string, fromPort: number) =>
  udp({ from, fromPort, to, toPort: 4789 }, data);
const raw = (protocol: number, from: string, to: string) => ip(data, { from, to, protocol });
const fragment = (from: string, to: string) => ip(data, { from, to, protocol: 47, more: true, id: 7 });

test('NET-1.1: a pair converses by the third leg, with any ports and any protocol; its first seconds are ordinary too', () => {
  for (const [name, kind, packet] of [
    [
      'tunnel',
      Kind.datagram,
      (from: string, to: string) => tunnel(from, to, from === local ? 50_001 : 40_001),
    ],
    ['ESP', Kind.protocol, (from: string, to: string) => raw(50, from, to)],
    ['SCTP', Kind.protocol, (from: string, to: string) => raw(132, from, to)],
    ['fragments', Kind.fragment, fragment],
  ] as const) {
    const { open, send, counts } = create();
    open(30);
    send(packet(local, remote));
    send(packet(remote, local), 500);
    assert.equal(counts(30)[kind], 500, name);
    open(31);
    send(packet(remote, local), 500);
    send(packet(local, remote), 3);
    for (const second of [30, 31]) {
      assert.equal(counts(second)[kind], 0, name);
      assert.equal(counts(second)[Kind.twoWayDatagram], 500, name);
      assert.ok(counts(second)[Bin.bytes + Kind.twoWayDatagram]! >= 500 * data.length, name);
    }
    assert.equal(counts(31, Direction.outbound)[Kind.twoWayDatagram], 3, name);
    open(32);
    send(packet(remote, local), 900);
    send(packet(local, remote), 3);
    assert.equal(counts(32)[Kind.twoWayDatagram], 900, name);
  }
});

test('NET-1.1: an answer alone makes no pair: without the third leg a flood stays one-way', () => {
  const { open, send, counts } = create();
  for (let second = 30; second < 34; second += 1) {
    open(second);
    if (second === 30) send(tunnel(local, remote, 50_001));
    send(tunnel(remote, local, 40_001), 500);
    assert.equal(counts(second)[Kind.datagram], 500);
  }
});

test('NET-1.1: random sources make no pair, though each is answered', () => {
  const { counters, open, send, counts } = create();
  const random = seededRandom(1);
  for (let second = 30; second < 33; second += 1) {
    open(second);
    for (let i = 0; i < 2000; i += 1) {
      const from = `11.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}.${second}`;
      const ends = { from, fromPort: 40_000 + i, to: local, toPort: 27_000 };
      send(udp(ends, data));
      send(udp(reverse(ends), data));
    }
    assert.equal(counts(second)[Kind.datagram], 2000);
    assert.equal(counts(second, Direction.outbound)[Kind.reply], 2000);
  }
  assert.equal(counters.pairs.evicted.established, 0);
});

test('NET-1.1: refusals are no leg: TCP resets, ICMP errors, datagrams without payload', () => {
  const unreachable = new Uint8Array([3, 3, 0, 0, 0, 0, 0, 0]);
  const ends = { from: remote, fromPort: 4000, to: local, toPort: 80 };
  for (const [name, kind, packet, refusal] of [
    ['reset', Kind.segment, tcp(ends, Tcp.ack, 1, data), tcp(reverse(ends), Tcp.reset, 1)],
    ['ICMP', Kind.datagram, udp(ends, data), ip(unreachable, { from: local, to: remote, protocol: 1 })],
    ['empty', Kind.reply, udp(ends, data), udp(reverse(ends), new Uint8Array(0))],
  ] as const) {
    const { open, send, counts } = create();
    for (let second = 30; second < 34; second += 1) {
      open(second);
      send(packet, 50);
      send(refusal, 50);
    }
    assert.equal(counts(33)[kind], 50, name);
  }
});

test('NET-1.1: who has conversed may send eight times its mean above a floor; of more, and without answers, nothing is ordinary', () => {
  const { open, send, counts } = create();
  const bot = (packets: number) => send(tunnel(remote, local, 40_001), packets);
  for (let second = 30; second < 50; second += 1) {
    open(second);
    bot(5);
    if (second % 2 === 0) send(tunnel(local, remote, 50_001));
  }
  for (const [second, packets, ordinary] of [
    [50, 39, 39],
    [51, 300, 0],
    [52, 10_000, 0],
  ] as const) {
    open(second);
    bot(packets);
    assert.deepEqual(
      [counts(second)[Kind.twoWayDatagram], counts(second)[Kind.datagram]],
      [ordinary, packets - ordinary],
    );
  }
  // What was too much is not learnt, and without an answer for eight seconds nothing is ordinary.
  open(53);
  bot(39);
  assert.equal(counts(53)[Kind.twoWayDatagram], 39);
  open(60);
  bot(5);
  assert.equal(counts(60)[Kind.datagram], 5);
  // Answers of three in a thousand are feedback.
  open(61);
  bot(10_000);
  send(tunnel(local, remote, 50_001), 30);
  assert.equal(counts(61)[Kind.twoWayDatagram], 10_000);
});

test('NET-1.1: a bot that opens a connection and then only sends is one-way, acknowledged data is not', () => {
  const ends = { from: remote, fromPort: 4000, to: local, toPort: 443 };
  const { open, send, counts } = create(limitsOf(dividedThresholds(1000)));
  open(30);
  send(tcp(ends, Tcp.syn, 1));
  send(tcp(reverse(ends), Tcp.syn | Tcp.ack, 1));
  send(tcp(ends, Tcp.ack, 2), 1000);
  // Of its first second it may be that only a part is known.
  assert.equal(counts(30)[Kind.twoWaySegment], 1000);
  open(31);
  send(tcp(ends, Tcp.ack, 2), 1000);
  assert.deepEqual([counts(31)[Kind.segment], counts(31)[Kind.twoWaySegment]], [1000, 0]);
  open(32);
  send(tcp(ends, Tcp.ack, 2, data), 1000);
  send(tcp(reverse(ends), Tcp.ack, 2), 5);
  assert.deepEqual([counts(32)[Kind.segment], counts(32)[Kind.twoWaySegment]], [0, 1000]);
});

test('NET-1.1: a pair that begins with a remote answer is known by its fragments too', () => {
  const ends = { from: local, fromPort: 53, to: remote, toPort: 5000 };
  const fragments = ip(data, { from: remote, to: local, protocol: 17, more: true, id: 7 });
  const { open, send, counts } = create();
  for (let second = 30; second < 33; second += 1) {
    open(second);
    // From a port of amplification no pair begins.
    send(udp(ends, data));
    send(udp(reverse(ends), data));
    if (second === 32) send(fragments, 100);
  }
  assert.deepEqual([counts(32)[Kind.fragment], counts(32)[Kind.twoWayDatagram]], [0, 101]);
});

test('NET-1.1: pings are ordinary up to 32 a second of each address, with their answers', () => {
  const ping = (type: number, from: string, to: string) =>
    ip(new Uint8Array([type, 0, 0, 0, 0, 1, 0, 1]), { from, to, protocol: 1 });
  const { open, send, counts } = create();
  for (let second = 30; second < 33; second += 1) {
    open(second);
    send(ping(8, remote, local), 200);
    send(ping(0, local, remote), 200);
  }
  assert.deepEqual([counts(32)[Kind.icmp], counts(32)[Kind.twoWayDatagram]], [168, 32]);
  assert.deepEqual([counts(32, 1)[Kind.icmpAnswer], counts(32, 1)[Kind.twoWayDatagram]], [168, 32]);
});

test('NET-8: a full table removes one-way pairs first, then the least recently used; established ones stay', () => {
  const { counters, open, send, counts } = create();
  const peers = Array.from({ length: 2000 }, (_, i) => `198.18.${i >> 8}.${i & 255}`);
  for (let second = 30; second < 32; second += 1) {
    open(second);
    for (const peer of peers) {
      send(tunnel(local, peer, 50_001));
      send(tunnel(peer, local, 40_001));
    }
  }
  assert.equal(counts(31)[Kind.twoWayDatagram], peers.length);
  open(32);
  for (let i = 0; i < pairsMax * 3; i += 1)
    send(tunnel(local, `11.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, 1));
  open(33);
  for (const peer of peers) send(tunnel(peer, local, 40_001), 2);
  counters.finish();
  assert.ok(counters.pairs.evicted.unestablished > pairsMax * 2);
  assert.equal(counters.pairs.evicted.established, 0);
  assert.equal(counts(33)[Kind.twoWayDatagram], peers.length * 2);
});
