/**
 * The same traffic in different shapes: names stay the same, and bytes are those of the packets that carry it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAll } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ip,
  join,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  u16,
  u32,
  udp,
} from '#sensor/testing/frames.ts';
import { wrappings } from '#sensor/testing/wrappings.ts';

type Packets = Uint8Array[];

const ends4 = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const ends6 = { from: '2001:db8::1', fromPort: 40_000, to: '2001:db8:9::9', toPort: 443 };

/** What clients say, and the expected names. */
const speeches: { name: string; say: Uint8Array; expected: string[] }[] = [
  { name: 'hello', say: clientHello({ host: 'www.example.com' }), expected: ['tls_sni www.example.com'] },
  {
    name: 'post-quantum hello in small records',
    say: clientHello({ host: 'pq.example.com', before: 1216, recordBytes: 90 }),
    expected: ['tls_sni pq.example.com'],
  },
  {
    name: 'request',
    say: ascii('GET /x HTTP/1.1\r\nAccept: */*\r\nHost:\r\n\tShop.example.com:8080\r\n\r\n'),
    expected: ['http_host shop.example.com'],
  },
  {
    name: 'CONNECT and hello',
    say: join(ascii('CONNECT a.example.com:443 HTTP/1.1\r\n\r\n'), clientHello({ host: 'b.example.com' })),
    expected: ['http_connect a.example.com', 'tls_sni b.example.com'],
  },
  {
    name: 'STARTTLS and hello',
    say: join(ascii('EHLO me\r\nSTARTTLS\r\n'), clientHello({ host: 'mail.example.com' })),
    expected: ['tls_sni mail.example.com'],
  },
  {
    name: 'PROXY v1 and request',
    say: ascii('PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: c.example.com\r\n\r\n'),
    expected: ['http_host c.example.com'],
  },
];

const shapes: Record<string, (say: Uint8Array) => [number, number][]> = {
  whole: (say) => [[0, say.length]],
  'one byte each': (say) => cut(say, 1),
  'one byte each, reversed': (say) => cut(say, 1).reverse(),
  'segments of 100, reversed': (say) => cut(say, 100).reverse(),
  'segments of 100, each twice': (say) => cut(say, 100).flatMap((piece) => [piece, piece]),
  overlapping: (say) => cut(say, 50).map(([from, length]) => [Math.max(0, from - 20), length + 40]),
  'odd ones first': (say) => {
    const pieces = cut(say, 64);
    return [...pieces.filter((_, i) => i % 2 === 1), ...pieces.filter((_, i) => i % 2 === 0)];
  },
};

function cut(say: Uint8Array, size: number): [number, number][] {
  return Array.from({ length: Math.ceil(say.length / size) }, (_, i) => [i * size, size]);
}

/** A connection whose client sends this data in these pieces; its sequence numbers wrap. */
function connection(ends: SegmentOptions, say: Uint8Array, pieces: [number, number][]): Packets {
  const start = 0xffffffc0;
  return [
    tcp(ends, Tcp.syn, start),
    tcp(reverse(ends), Tcp.syn | Tcp.ack, 77),
    ...pieces.map(([from, length]) =>
      tcp(ends, Tcp.ack | Tcp.push, (start + 1 + from) >>> 0, say.subarray(from, from + length)),
    ),
    tcp(reverse(ends), Tcp.ack, 78),
  ];
}

/** A lookup over UDP, then QUIC to the returned address. */
function lookup(ends: SegmentOptions): Packets {
  const resolver = { ...ends, fromPort: 5000, toPort: 53 };
  const answers = [
    { name: 'quic.example.com', ttl: 60, cname: 'edge.example.net' },
    { name: 'edge.example.net', ttl: 60, address: ends.to },
  ];
  return [
    udp(resolver, dnsMessage({ id: 7, name: 'quic.example.com' })),
    udp(reverse(resolver), dnsMessage({ id: 7, name: 'quic.example.com', answers })),
    udp(ends, new Uint8Array(40).fill(0xc1)),
  ];
}

/** The packets, with larger ones split into fragments of this size. */
function refragment(packets: Packets, size: number, isReversed: boolean): Packets {
  return packets.flatMap((packet, i) => {
    const pieces = packet[0]! >> 4 === 6 ? fragments6(packet, size, i) : fragments4(packet, size, i);
    return isReversed ? pieces.reverse() : pieces;
  });
}

function fragments4(packet: Uint8Array, size: number, id: number): Packets {
  const payload = packet.subarray(20);
  const pieces: Packets = [];
  for (let at = 0; at < payload.length; at += size) {
    const header = packet.slice(0, 20);
    const part = payload.subarray(at, at + size);
    const more = at + size < payload.length ? 0x2000 : 0;
    header.set(u16(20 + part.length), 2);
    header.set(u16(id + 1), 4);
    header.set(u16((at >> 3) | more), 6);
    pieces.push(join(header, part));
  }
  return pieces;
}

function fragments6(packet: Uint8Array, size: number, id: number): Packets {
  const payload = packet.subarray(40);
  const pieces: Packets = [];
  for (let at = 0; at < payload.length; at += size) {
    const part = payload.subarray(at, at + size);
    const header = packet.slice(0, 40);
    header.set(u16(8 + part.length), 4);
    header[6] = 44;
    const more = at + size < payload.length ? 1 : 0;
    pieces.push(join(header, [packet[6]!, 0], u16(at | more), u32(id + 1), part));
  }
  return pieces;
}

/** Evidence and host of every named flow outside of tunnels, and the counted IP bytes. */
function read(
  frames: readonly Uint8Array[],
  linkType: number,
): { names: string[]; bytes: number; tunnels: string[] } {
  const { flows, conversations, totals } = readAll(frames, linkType);
  const named = flows.filter((flow) => flow.evidence !== 'none');
  const bytes = conversations.reduce((sum, pair) => sum + pair.bytesAToB + pair.bytesBToA, 0);
  assert.equal(bytes, totals.ipBytes);
  assert.equal(totals.packets, frames.length);
  return {
    names: named.map((flow) => `${flow.evidence} ${flow.host}`).sort(),
    bytes,
    tunnels: [...new Set(named.map((flow) => flow.tunnel ?? ''))],
  };
}

function sumOf(packets: readonly Uint8Array[]): number {
  return packets.reduce((sum, packet) => sum + packet.length, 0);
}

test('NET-2.2.3: names and bytes are the same for every segmentation, in fragments and behind every link type and tunnel', () => {
  let shown = 0;
  for (const ends of [ends4, ends6]) {
    const streams = speeches.flatMap(({ name, say, expected }) =>
      Object.entries(shapes).map(([shape, pieces]) => ({
        title: `${name}, ${shape}`,
        packets: connection(ends, say, pieces(say)),
        expected: [...expected].sort(),
      })),
    );
    streams.push({ title: 'lookup', packets: lookup(ends), expected: ['dns quic.example.com'] });
    for (const { title, packets, expected } of streams) {
      // One-byte segments are not fragmented further; that would test nothing new.
      const isCoarse = !title.endsWith('one byte each') && !title.endsWith('one byte each, reversed');
      const fragmented = isCoarse ? [refragment(packets, 48, false), refragment(packets, 48, true)] : [];
      for (const forms of [packets, ...fragmented]) {
        const found = read(forms, 101);
        assert.deepEqual(found.names, expected, `${title}, IPv${ends.from.includes(':') ? 6 : 4}`);
        assert.equal(found.bytes, sumOf(forms), title);
        shown += 1;
      }
    }
    for (const wrapping of wrappings) {
      for (const { title, packets, expected } of streams) {
        if (!/whole|100, reversed|lookup/.test(title)) continue;
        const frames = packets.map((packet) => wrapping.wrap(packet));
        if (frames.some((frame) => frame === null)) continue;
        const found = read(frames as Packets, wrapping.linkType);
        assert.deepEqual(found.names, expected, `${title} behind ${wrapping.name}`);
        assert.deepEqual(found.tunnels, [wrapping.tunnel ?? ''], wrapping.name);
        if (wrapping.tunnel === null)
          assert.equal(found.bytes, sumOf(packets), `${title} behind ${wrapping.name}`);
        else assert.ok(found.bytes > sumOf(packets), 'bytes count outside the tunnel');
        shown += 1;
      }
    }
  }
  assert.ok(shown > 500, `${shown} forms`);
});

test('a fragmented tunnel packet is decoded when it is complete', () => {
  const say = clientHello({ host: 'www.example.com' });
  const inner = connection(ends4, say, [[0, say.length]]);
  const outer = inner.map((packet) =>
    ip(join(u16(0), u16(0x0800), packet), { from: '198.51.100.1', to: '198.51.100.2', protocol: 47 }),
  );
  for (const isReversed of [false, true]) {
    const found = read(refragment(outer, 64, isReversed), 101);
    assert.deepEqual(found.names, ['tls_sni www.example.com']);
  }
});
