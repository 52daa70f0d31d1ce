import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import type { LocalScope } from '#sensor/capture/index.ts';
import { createThresholdBook, defaultThresholds } from '#sensor/detector/index.ts';
import { ethernet, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { AttackCounters, countedHostsMax } from './attack-counters.ts';
import { Bin, binLength, Direction, FrameFeed, Kind, type SlotTable } from './index.ts';
import { batchMax } from './packet-batch.ts';
import { TrafficDetail } from './traffic-detail.ts';

const limits = createThresholdBook(defaultThresholds).sets.map(({ hostLimits }) => hostLimits);
const second = 1_700_000_040;

/** Counters with what feeds them frames. */
function create(scope: LocalScope) {
  const counters = new AttackCounters({ scope, limits });
  counters.open(second);
  const feed = new FrameFeed(counters);
  const observe = (frame: Uint8Array) => feed.observe(frame, 0, frame.length, frame.length, 1, 1, second);
  return { counters, observe };
}

/** All counters of one direction of a table in the second. */
function totalOf(table: SlotTable, direction: number): Float64Array {
  const total = new Float64Array(binLength);
  for (let slot = 0; slot < table.count; slot += 1) table.addBin(slot, direction, second, total);
  return total;
}

/** Datagrams, replies among them. */
const datagramsOf = (counts: Float64Array, of = 0) => counts[of + Kind.datagram]! + counts[of + Kind.reply]!;

const ipv4 = (word: number) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join('.');

test('packets from addresses that the filter takes for protected count for the protected end, each once', () => {
  const addresses = Array.from({ length: countedHostsMax }, (_, i) => `10.77.${i >> 8}.${i & 255}`);
  const { counters, observe } = create({ prefixes: [], addresses });
  const random = seededRandom(3);
  const packets = batchMax * 5 + 77;
  for (let i = 0; i < packets; i += 1) {
    const remote = { from: ipv4(0x0b000000 + Math.floor(random() * 2 ** 24)), fromPort: 40_000 };
    const ends = { ...remote, to: addresses[i % addresses.length]!, toPort: 443 };
    const frame = udp(i % 4 === 0 ? reverse(ends) : ends, new Uint8Array(20));
    observe(ethernet(frame));
  }
  counters.settle();
  const answers = Math.ceil(packets / 4);
  assert.equal(datagramsOf(totalOf(counters.hosts, Direction.outbound)), answers);
  assert.equal(datagramsOf(totalOf(counters.hosts, Direction.inbound)), packets - answers);
  assert.equal(datagramsOf(totalOf(counters.hosts, Direction.inbound), Bin.bytes), (packets - answers) * 48);
  assert.equal(counters.hosts.count, countedHostsMax);
});

test('addresses without room count in their prefix by kind, and those outside of the protected prefix do not', () => {
  const scope = { prefixes: ['10.1.0.0/18', '10.1.64.0/25'], addresses: [] };
  const { counters, observe } = create(scope);
  const ends = { from: '198.51.100.9', fromPort: 999, to: '', toPort: 80 };
  const rounds = 2;
  for (let round = 0; round < rounds; round += 1) {
    for (let host = 0; host < 65 * 256; host += 1) {
      const to = ipv4(0x0a010000 + host);
      observe(ethernet(tcp({ ...ends, to }, Tcp.syn, 1)));
      observe(ethernet(udp({ ...ends, to }, new Uint8Array(12))));
      // The other end has sent before, so the next one is a reply.
      if (host === 64 * 256 - 1) {
        observe(ethernet(udp(reverse({ ...ends, to }), new Uint8Array(12))));
        observe(ethernet(udp({ ...ends, to }, new Uint8Array(12))));
      }
    }
  }
  counters.settle();
  const hosts = 64 * 256 + 128;
  const without = hosts - countedHostsMax;
  assert.equal(counters.hosts.count, countedHostsMax);
  const inPrefixes = totalOf(counters.prefixes, Direction.inbound);
  assert.equal(inPrefixes[Kind.opening], rounds * without);
  // In the second round also the datagram of each round's end.
  assert.equal(datagramsOf(inPrefixes), rounds * (without + 1));
  assert.ok(inPrefixes[Kind.reply]! >= rounds);
  // Answers of an address without room are in no prefix.
  assert.equal(counters.overflowed, rounds * (2 * without + 2));
  const inHosts = totalOf(counters.hosts, Direction.inbound);
  assert.equal(inHosts[Kind.opening]! + inPrefixes[Kind.opening]!, rounds * hosts);
});

test('IPv6 packets of waiting batches keep their own addresses', () => {
  const addresses = Array.from({ length: 300 }, (_, i) => `2001:db8::${(i + 1).toString(16)}`);
  const { counters, observe } = create({ prefixes: [], addresses });
  const packets = batchMax * 2 + 5;
  for (let i = 0; i < packets; i += 1) {
    const to = addresses[i % addresses.length]!;
    const ends = { from: `2001:db8:ffff::${(i + 1).toString(16)}`, fromPort: 5, to, toPort: 443 };
    observe(ethernet(udp(ends, new Uint8Array(20))));
    observe(ethernet(udp({ ...ends, from: '198.51.100.9', to: '192.0.2.1' }, new Uint8Array(20))));
  }
  counters.settle();
  const counts = new Float64Array(binLength);
  const slot = counters.hosts.find(6, 0x20010db8, 0, 0, 300);
  counters.hosts.addBin(slot, Direction.inbound, second, counts);
  assert.equal(datagramsOf(counts), Math.floor(packets / 300));
  assert.equal(datagramsOf(totalOf(counters.hosts, Direction.inbound)), packets);
});

test('the heaviest prefixes are those of space saving: the lightest entry, the first of equals, makes room', () => {
  const detail = new TrafficDetail();
  detail.reset(4, 0);
  const counts = new Map<number, [count: number, error: number]>();
  const random = seededRandom(11);
  for (let i = 0; i < 30_000; i += 1) {
    const prefix = (Math.floor(random() ** 3 * 400) << 8) | 0;
    const weight = i < 200 ? 1 : 1 + 31 * Math.floor(random() * 2);
    detail.add(Kind.datagram, 0, 0, 0, 0, prefix | 9, weight, 0, 0);
    const known = counts.get(prefix);
    if (known) known[0] += weight;
    else if (counts.size < 64) counts.set(prefix, [weight, 0]);
    else {
      const [lightest, [least]] = [...counts].reduce((one, other) => (other[1][0] < one[1][0] ? other : one));
      // Replaced in its place: a map keeps the order of insertion.
      const entries = [...counts].map(([key, value]) =>
        key === lightest ? ([prefix, [least + weight, least]] as const) : ([key, value] as const),
      );
      counts.clear();
      for (const [key, [count, error]] of entries) counts.set(key, [count, error]);
    }
  }
  const { first, counts: found, errors } = detail.summary().prefixes;
  const all = [...first].map((prefix, i) => [prefix, found[i], errors[i]]);
  assert.deepEqual(
    all,
    [...counts].map(([prefix, [count, error]]) => [prefix, count, error]),
  );
});
