/**
 * Frames to break, and ways to break them.
 *
 * Seeds are generated frames of every kind that the decoders know.
 */
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  ip,
  join,
  reverse,
  Tcp,
  tcp,
  u16,
  u32,
  udp,
} from './frames.ts';
import { wrappings } from './wrappings.ts';

/** A frame and the link type that it was captured with. */
export interface SeedFrame {
  bytes: Uint8Array;
  linkType: number;
}

const web = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const web6 = { from: '2001:db8::1', fromPort: 40_000, to: '2001:db8:9::9', toPort: 443 };

/** Generated frames: each application in each kind of encapsulation. */
export function generatedSeeds(): SeedFrame[] {
  const seeds: SeedFrame[] = [];
  for (const ends of [web, web6]) {
    const answers = [
      { name: 'www.example.com', ttl: 60, cname: 'edge.example.net' },
      { name: 'edge.example.net', ttl: 60, address: '203.0.113.77' },
    ];
    const lookup = { ...ends, toPort: 53 };
    const question = dnsMessage({ id: 7, name: 'www.example.com' });
    const answer = dnsMessage({ id: 7, name: 'www.example.com', answers });
    const packets = [
      tcp(ends, Tcp.syn, 1),
      tcp(ends, Tcp.push | Tcp.ack, 2, clientHello({ host: 'www.example.com', before: 300 })),
      tcp(
        ends,
        Tcp.push | Tcp.ack,
        2,
        ascii('GET / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 3\r\n\r\nabc'),
      ),
      tcp(ends, Tcp.push | Tcp.ack, 2, ascii('CONNECT a.example.com:443 HTTP/1.1\r\n\r\n')),
      tcp(ends, Tcp.push | Tcp.ack, 2, join([0x20, 0, 0, 1, 0x85, 0xae], new Uint8Array(30))),
      tcp(ends, Tcp.push | Tcp.ack, 2, join(u32(8), u32(80_877_103))),
      tcp(ends, Tcp.push | Tcp.ack, 2, ascii('PROXY TCP4 198.51.100.22 203.0.113.7 35646 443\r\n')),
      udp(lookup, question),
      udp(reverse(lookup), answer),
      tcp({ ...lookup }, Tcp.push | Tcp.ack, 2, join(u16(question.length), question)),
      udp({ ...ends, toPort: 443 }, new Uint8Array(60).fill(0xc3)),
      ip(new Uint8Array(30), { from: ends.from, to: ends.to, protocol: 1 }),
      ip(new Uint8Array(30), { from: ends.from, to: ends.to, protocol: 50 }),
    ];
    for (const packet of packets) {
      for (const { wrap, linkType } of wrappings) {
        const bytes = wrap(packet);
        if (bytes) seeds.push({ bytes, linkType });
      }
      seeds.push({ bytes: ethernet(packet), linkType: 1 });
    }
  }
  return seeds;
}

const interesting = [0, 1, 2, 4, 5, 6, 17, 20, 40, 41, 44, 47, 60, 63, 64, 0x7f, 0x80, 0xc0, 0xfe, 0xff];

/** One broken frame from `seeds`; a part of a second seed may be spliced in. */
export function mutate(seeds: readonly SeedFrame[], random: () => number): SeedFrame {
  const below = (limit: number) => Math.floor(random() * limit);
  const seed = seeds[below(seeds.length)]!;
  let bytes: Uint8Array = seed.bytes.slice();
  const times = 1 + below(4);
  for (let i = 0; i < times; i += 1) {
    if (bytes.length === 0) break;
    // Half of the damage is in the headers, which contain lengths and types.
    const at = random() < 0.5 ? below(Math.min(bytes.length, 90)) : below(bytes.length);
    switch (below(8)) {
      case 0:
        bytes[at]! ^= 1 << below(8);
        break;
      case 1:
        bytes[at] = interesting[below(interesting.length)]!;
        break;
      case 2:
        bytes[at] = below(256);
        break;
      case 3:
        if (bytes.length < 2) break;
        bytes.set(u16(below(2) === 0 ? below(65_536) : 0xffff - below(4)), Math.min(at, bytes.length - 2));
        break;
      case 4:
        bytes = bytes.slice(0, at);
        break;
      case 5:
        bytes = join(bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + 1 + below(8))));
        break;
      case 6:
        bytes = join(bytes.subarray(0, at), bytes.subarray(at, at + below(24)), bytes.subarray(at));
        break;
      default: {
        const other = seeds[below(seeds.length)]!.bytes;
        bytes = join(bytes.subarray(0, at), other.subarray(below(other.length + 1)));
      }
    }
  }
  return { bytes: bytes.subarray(0, 65_535), linkType: seed.linkType };
}
