import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCapture, type LocalScope } from '#sensor/capture/index.ts';
import { createThresholdBook, defaultThresholds } from '#sensor/detector/index.ts';
import { ethernet, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { AttackCounters } from './attack-counters.ts';
import { CounterArray } from './counter-array.ts';
import { Bin, binLength, Direction, FrameFeed, Kind, LiveCounters, packetsOf, readRows } from './index.ts';
import { SlotTable } from './slot-table.ts';

const firstSecond = 1_700_000_040;
const limits = createThresholdBook(defaultThresholds).sets.map(({ hostLimits }) => hostLimits);
const inbound = { from: '198.51.100.9', fromPort: 999, to: '192.0.2.7', toPort: 80 };

/** What the bins of an address have in the open second. */
function countsOf(counters: AttackCounters, last: number, second: number, direction: number): Float64Array {
  const counts = new Float64Array(binLength);
  counters.settle();
  counters.hosts.addBin(counters.hosts.find(4, 0, 0, 0, last), direction, second, counts);
  return counts;
}

const seven = (192 << 24) | (2 << 8) | 7;

/** Counters with what feeds them frames. */
function create(scope: LocalScope) {
  const counters = new AttackCounters({ scope, limits });
  const feed = new FrameFeed(counters);
  const observe = (frame: Uint8Array) => feed.observe(frame, 0, frame.length, frame.length, 1, 1, 30);
  return { counters, observe };
}

test('a datagram is a reply after the other end of its flow has sent, and not before', () => {
  const { counters, observe } = create({ prefixes: [], addresses: ['192.0.2.7'] });
  counters.open(30);
  const request = ethernet(udp(inbound, new Uint8Array(40)));
  const answer = ethernet(udp(reverse(inbound), new Uint8Array(90)));
  for (const frame of [request, request, answer, request]) observe(frame);
  const received = countsOf(counters, seven, 30, Direction.inbound);
  assert.equal(received[Kind.datagram], 2);
  assert.equal(received[Kind.reply], 1);
  assert.equal(received[Bin.bytes + Kind.datagram], 2 * 68);
  assert.equal(countsOf(counters, seven, 30, Direction.outbound)[Kind.reply], 1);
});

test('a handshake counts as opened once, in the second in which it is completed', () => {
  const { counters, observe } = create({ prefixes: ['192.0.2.0/24'], addresses: [] });
  counters.open(30);
  observe(ethernet(tcp(inbound, Tcp.syn, 1)));
  observe(ethernet(tcp(reverse(inbound), Tcp.syn | Tcp.ack, 1)));
  counters.open(31);
  for (let i = 0; i < 3; i += 1) observe(ethernet(tcp(inbound, Tcp.ack, 2)));
  assert.equal(countsOf(counters, seven, 30, Direction.inbound)[Bin.opened], 0);
  assert.equal(countsOf(counters, seven, 31, Direction.inbound)[Bin.opened], 1);
  assert.equal(countsOf(counters, seven, 31, Direction.inbound)[Kind.twoWaySegment], 3);
});

test('a connection counts as used once, in the second in which its opener sends data; what it receives does not matter', () => {
  const { counters, observe } = create({ prefixes: ['192.0.2.0/24'], addresses: [] });
  counters.open(30);
  const data = new Uint8Array(60);
  observe(ethernet(tcp(inbound, Tcp.syn, 1)));
  observe(ethernet(tcp(reverse(inbound), Tcp.syn | Tcp.ack, 1)));
  observe(ethernet(tcp(inbound, Tcp.ack, 2)));
  observe(ethernet(tcp(reverse(inbound), Tcp.ack | Tcp.push, 2, data)));
  counters.open(31);
  for (let i = 0; i < 3; i += 1) observe(ethernet(tcp(inbound, Tcp.ack | Tcp.push, 2 + i * 60, data)));
  const used = [30, 31].map((second) => countsOf(counters, seven, second, Direction.inbound)[Bin.used]);
  assert.deepEqual(used, [0, 1]);
  assert.equal(countsOf(counters, seven, 31, Direction.outbound)[Bin.used], 0);
});

test('when pairs of small and of large datagrams are established in one second, no bytes of them stay as one-way', () => {
  const { counters, observe } = create({ prefixes: ['192.0.2.0/24'], addresses: [] });
  const large = { from: '198.51.100.2', fromPort: 5000, to: '192.0.2.7', toPort: 9000 };
  const frames = (ends: typeof large, bytes: number) => ethernet(udp(ends, new Uint8Array(bytes)));
  for (const second of [30, 31, 32]) {
    counters.open(second);
    // Small ones are no replies: each second has a flow of its own, which is answered last.
    const small = { ...large, from: '198.51.100.1', fromPort: second };
    observe(frames(reverse(large), 20));
    for (let i = 0; i < 10; i += 1) observe(frames(large, 1400));
    for (let i = 0; i < 20; i += 1) observe(frames(small, 100));
    observe(frames(reverse(small), 20));
  }
  counters.open(33);
  for (const second of [31, 32]) {
    const counts = countsOf(counters, seven, second, Direction.inbound);
    const bytes = [Kind.datagram, Kind.reply].map((kind) => counts[Bin.bytes + kind]);
    assert.deepEqual(bytes, [0, 0], `second ${second}`);
    assert.equal(counts[Bin.bytes + Kind.twoWayDatagram], 10 * 1428 + 20 * 128);
  }
});

test('both ends of a packet between two protected addresses are counted; others cost no slot', () => {
  const ends = { ...inbound, from: '192.0.2.8' };
  const { counters, observe } = create({ prefixes: [], addresses: ['192.0.2.7', '192.0.2.8'] });
  counters.open(30);
  for (let i = 0; i < 600; i += 1) observe(ethernet(tcp(ends, Tcp.syn, 1)));
  observe(ethernet(tcp({ ...inbound, to: '192.0.2.9' }, Tcp.syn, 1)));
  assert.equal(countsOf(counters, seven, 30, Direction.inbound)[Kind.opening], 600);
  assert.equal(countsOf(counters, seven + 1, 30, Direction.outbound)[Kind.opening], 600);
  assert.equal(counters.hosts.count, 2);
});

test('a pair goes on conversing when its flow made room for others in the table', () => {
  const scope: LocalScope = { prefixes: [], addresses: ['192.0.2.7'] };
  const capture = createCapture({
    ...{ name: 'test0', role: 'uplink', linkType: 1, local: scope, flowsMax: 16 },
    registrableDomain: (host) => host,
  });
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  capture.setTap(counters);
  const send = (second: number, frame: Uint8Array) =>
    capture.observe(frame, 0, frame.length, frame.length, firstSecond + second, 0, -1, 1);
  const request = ethernet(udp(inbound, new Uint8Array(40)));
  const answer = ethernet(udp(reverse(inbound), new Uint8Array(90)));
  const push = (second: number, packets: number) => {
    for (let i = 0; i < 200; i += 1) {
      const other = { from: `203.0.113.${i + 1}`, fromPort: second, to: '192.0.2.200', toPort: 80 };
      const ends = [other, reverse(other), other, reverse(other)].slice(0, packets);
      for (const one of ends) send(second, ethernet(udp(one, new Uint8Array(4))));
    }
  };
  for (const second of [0, 1, 3]) {
    for (const frame of [request, answer]) send(second, frame);
    push(second, 4);
  }
  capture.turnTap((firstSecond + 4) * 1000);
  const twoWay = counters
    .takeSeconds()
    .filter(({ hosts }) => hosts.length > 0)
    .map(({ second, hosts }) => {
      let found = 0;
      readRows(hosts, ({ bits }) => {
        found = bits;
      });
      return [second - firstSecond, (found >> Kind.twoWayDatagram) & 1, (found >> Kind.datagram) & 1];
    });
  assert.deepEqual(twoWay, [
    [0, 0, 1],
    [1, 1, 0],
    [3, 1, 0],
  ]);
});

/** Rows of one second: address words and packets, inbound and outbound. */
function rowsOf(rows: Float64Array): string[] {
  const found: string[] = [];
  readRows(rows, ({ version, w3, bits, at, otherBits, otherAt }) =>
    found.push(`${version} ${w3} ${packetsOf(rows, bits, at)} ${packetsOf(rows, otherBits, otherAt)}`),
  );
  return found;
}

test('a live second has the packets of the fast path and of all flows, protected or not', () => {
  const scope: LocalScope = { prefixes: [], addresses: ['192.0.2.7'] };
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  const capture = createCapture({
    ...{ name: 'test0', role: 'uplink', linkType: 1, local: scope },
    registrableDomain: (host) => host,
  });
  capture.setTap(counters);
  const mine = ethernet(udp(inbound, new Uint8Array(40)));
  const other = ethernet(udp({ ...inbound, to: '192.0.2.200' }, new Uint8Array(40)));
  const send = (frame: Uint8Array, second: number, segments: number) =>
    capture.observe(frame, 0, frame.length, frame.length, firstSecond + second, 0, -1, segments);
  for (let second = 0; second < 3; second += 1) {
    for (let i = 0; i < 50; i += 1) {
      send(mine, second, 1);
      send(other, second, 2);
    }
  }
  // Also over the end of a minute, which closes its totals.
  send(mine, 60, 1);
  capture.turnTap((firstSecond + 61) * 1000);
  const seconds = counters.takeSeconds().filter(({ second }) => second >= firstSecond);
  const busy = seconds.filter(({ packets }) => packets > 0);
  assert.deepEqual(
    busy.map(({ second, packets, hosts }) => [second - firstSecond, packets, rowsOf(hosts)]),
    [
      [0, 150, [`4 ${seven} 50 0`]],
      [1, 150, [`4 ${seven} 50 0`]],
      [2, 150, [`4 ${seven} 50 0`]],
      [60, 1, [`4 ${seven} 1 0`]],
    ],
  );
});

test('a flow that one order does not protect is counted by the next one', () => {
  const order = (address: string) => ({
    ...{ number: 1, groups: [], limits },
    scope: { prefixes: [], addresses: [address] },
  });
  const capture = createCapture({
    ...{ name: 'test0', role: 'uplink', linkType: 1, local: { prefixes: ['192.0.2.0/24'], addresses: [] } },
    registrableDomain: (host) => host,
  });
  const frame = ethernet(udp(inbound, new Uint8Array(40)));
  const send = () => capture.observe(frame, 0, frame.length, frame.length, firstSecond, 0, -1, 1);
  capture.setTap(new LiveCounters(order('192.0.2.9')));
  for (let i = 0; i < 5; i += 1) send();
  const counters = new LiveCounters(order('192.0.2.7'));
  capture.setTap(counters);
  for (let i = 0; i < 5; i += 1) send();
  capture.turnTap((firstSecond + 1) * 1000);
  const [second] = counters.takeSeconds();
  assert.deepEqual(rowsOf(second!.hosts), [`4 ${seven} 5 0`]);
  assert.equal(second!.packets, 5);
});

test('counters above 2^31 stay exact, also when their slot moves', () => {
  const table = new SlotTable(8, 1, 1, 7);
  table.open(9);
  const bytes = 2 ** 31 + 12_345;
  for (const last of [1, 2, 3]) {
    const slot = table.locate(4, 0, 0, 0, last);
    for (let i = 0; i < 3; i += 1) table.add(slot, 0, Kind.segment, 1, bytes * last, 0, 0);
  }
  table.keepOnly([0, 2]);
  const counts = new Float64Array(binLength);
  table.addBin(table.find(4, 0, 0, 0, 3), 0, 9, counts);
  assert.equal(counts[Bin.bytes + Kind.segment], 9 * bytes);
  assert.equal(table.find(4, 0, 0, 0, 2), -1);
  assert.equal(table.hasBytes(1, 0, Kind.segment, 9 * bytes), true);
  assert.equal(table.hasBytes(1, 0, Kind.segment, 9 * bytes + 1), false);
  const array = new CounterArray(4);
  array.add(2, bytes);
  array.clear(0, 4);
  assert.equal(array.get(2), 0);
});

test('a table with a number of slots that its index can not have is refused, instead of being searched for ever', () => {
  for (const slots of [0, 3, 1000]) assert.throws(() => new SlotTable(slots, 1, 1, 7), RangeError);
});
