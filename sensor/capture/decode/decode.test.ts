import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readAll } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  ip,
  join,
  Tcp,
  tcp,
  u16,
  u32,
  udp,
} from '#sensor/testing/frames.ts';

const ends = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const ends6 = { from: '2001:db8::1', fromPort: 40_000, to: '2001:db8:9::9', toPort: 443 };
const packet = tcp(ends, Tcp.ack, 1, ascii('hello'));

const swapped = (value: number) => [value & 255, value >> 8];

function verdicts(frame: Uint8Array, linkType = 1): [number, number, number] {
  const { totals } = readAll([frame], linkType);
  return [totals.ipPackets, totals.nonIpPackets, totals.parserDropped];
}

test('NET-2.2.6: every prefix of every frame counts exactly once and never throws', () => {
  const frames = [
    ethernet(packet),
    ethernet(packet, { tags: [7, 8] }),
    ethernet(tcp(ends6, Tcp.push | Tcp.ack, 1, clientHello({ host: 'a.example.com' }))),
    ethernet(udp({ ...ends, toPort: 53 }, dnsMessage({ id: 1, name: 'a.example.com' }))),
    ethernet(ip(join([0, 0, 0x08, 0], packet), { from: '192.0.2.1', to: '192.0.2.2', protocol: 47 })),
    ethernet(join(u16(0xaaaa), [3, 0, 0, 0], u16(0x0800), packet), { type: packet.length + 8 }),
    ethernet(join(u32(0x00001140), packet), { type: 0x8847 }),
  ];
  for (const frame of frames) {
    for (let length = 0; length <= frame.length; length += 1) {
      const { totals } = readAll([frame.slice(0, length)]);
      assert.equal(totals.packets, 1);
      assert.equal(totals.ipPackets + totals.nonIpPackets + totals.parserDropped, 1, `prefix of ${length}`);
    }
  }
});

test('NET-2.2.6: arbitrary bytes on any link type count exactly once and never throw', () => {
  const linkTypes = [0, 1, 9, 10, 12, 101, 105, 108, 113, 127, 228, 229, 239, 276];
  const input = fc.tuple(fc.constantFrom(...linkTypes), fc.uint8Array({ maxLength: 120 }));
  fc.assert(
    fc.property(input, ([linkType, bytes]) => {
      const { totals } = readAll([bytes], linkType);
      return totals.ipPackets + totals.nonIpPackets + totals.parserDropped === 1;
    }),
    { numRuns: 400, seed: 1 },
  );
});

test('NET-2.2.6: a damaged frame counts exactly once, for any damaged byte', () => {
  const frame = ethernet(tcp(ends6, Tcp.push | Tcp.ack, 1, clientHello({ host: 'a.example.com' })), {
    tags: [9],
  });
  fc.assert(
    fc.property(fc.nat(frame.length - 1), fc.nat(255), (at, value) => {
      const damaged = frame.slice();
      damaged[at] = value;
      const { totals } = readAll([damaged]);
      return totals.ipPackets + totals.nonIpPackets + totals.parserDropped === 1;
    }),
    { numRuns: 400, seed: 1 },
  );
});

test('a valid frame that is not IP counts as non-IP, not as dropped: ARP, LLDP, spanning tree', () => {
  assert.deepEqual(verdicts(ethernet(new Uint8Array(28), { type: 0x0806 })), [0, 1, 0]);
  assert.deepEqual(verdicts(ethernet(new Uint8Array(28), { type: 0x88cc })), [0, 1, 0]);
  assert.deepEqual(verdicts(ethernet(join([0x42, 0x42, 3], new Uint8Array(35)), { type: 38 })), [0, 1, 0]);
});

test('a truncated or contradictory packet is dropped', () => {
  const badVersion = packet.slice();
  badVersion[0] = 0x55;
  const shortHeader = packet.slice();
  shortHeader[0] = 0x44;
  const shortTotal = packet.slice();
  shortTotal.set(u16(19), 2);
  assert.deepEqual(verdicts(ethernet(badVersion, { type: 0x0800 })), [0, 0, 1]);
  assert.deepEqual(verdicts(ethernet(shortHeader, { type: 0x0800 })), [0, 0, 1]);
  assert.deepEqual(verdicts(ethernet(shortTotal, { type: 0x0800 })), [0, 0, 1]);
  assert.deepEqual(verdicts(ethernet(packet).slice(0, 13)), [0, 0, 1]);
});

test('bytes are IP total lengths: padding and tags do not count', () => {
  const padded = join(ethernet(packet, { tags: [1, 2, 3] }), new Uint8Array(30));
  assert.equal(readAll([padded]).totals.ipBytes, packet.length);
});

test('a total length of zero, as left by offload, counts the length on the wire', () => {
  const offloaded = packet.slice();
  offloaded.set([0, 0], 2);
  assert.equal(readAll([ethernet(offloaded)]).totals.ipBytes, packet.length);
  const offloaded6 = tcp(ends6, Tcp.ack, 1, ascii('hello'));
  const length = offloaded6.length;
  offloaded6.set([0, 0], 4);
  assert.equal(readAll([ethernet(offloaded6)]).totals.ipBytes, length);
});

test('the same packet is found behind every supported link type', () => {
  const wifi = join([0x08, 0x01], new Uint8Array(22), u16(0xaaaa), [3, 0, 0, 0], u16(0x0800), packet);
  const attribute = join([packet.length + 4, 0, 9, 0], packet);
  const wrapped: [number, Uint8Array][] = [
    [0, join([2, 0, 0, 0], packet)],
    [108, join([0, 0, 0, 2], packet)],
    [9, join([0xff, 3, 0, 0x21], packet)],
    [10, join(new Uint8Array(13), u16(0xaaaa), [3, 0, 0, 0], u16(0x0800), packet)],
    [12, packet],
    [101, packet],
    [228, packet],
    [113, join(new Uint8Array(14), u16(0x0800), packet)],
    [276, join(u16(0x0800), new Uint8Array(18), packet)],
    [127, join([0, 0, 8, 0, 0, 0, 0, 0], wifi)],
    [105, wifi],
    [239, join([2, 0, 0, 0], [8, 0, 1, 0, 0, 0, 0, 0], attribute)],
  ];
  for (const [linkType, frame] of wrapped) {
    const { totals, conversations } = readAll([frame], linkType);
    assert.equal(totals.ipBytes, packet.length, `link type ${linkType}`);
    assert.equal(conversations[0]!.a, '192.0.2.1', `link type ${linkType}`);
  }
});

test('an NFLOG packet of any length is found in either byte order', () => {
  const lengths = Array.from({ length: 3000 }, (_, i) => 20 + i);
  const packets = lengths.map((length) =>
    ip(new Uint8Array(length - 20), { from: '192.0.2.1', to: '192.0.2.2', protocol: 255 }),
  );
  const little = packets.map((one) => join([2, 0, 0, 0], swapped(one.length + 4), [9, 0], one));
  const big = packets.map((one) => join([2, 0, 0, 0], u16(one.length + 4), [0, 9], one));
  for (const frames of [little, big]) {
    const { totals } = readAll(frames, 239);
    assert.equal(totals.ipPackets, lengths.length);
    assert.equal(
      totals.ipBytes,
      lengths.reduce((sum, length) => sum + length),
    );
  }
});

test('NET-2.2.4: the protocol of IPv6 is what follows its extension headers', () => {
  const inner = tcp(ends6, Tcp.ack, 1).slice(40);
  const extended = ip(join([60, 0, 0, 0, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0, 0], inner), {
    from: ends6.from,
    to: ends6.to,
    protocol: 0,
  });
  const { flows } = readAll([ethernet(extended)]);
  assert.deepEqual(flows[0]!.server, { ip: '2001:db8:9::9', port: 443 });
});
