/**
 * A capture of a flood: named connections first, then one-packet flows from unique sources, then one more packet of
 * each named connection, which shows whether it is still known.
 *
 * usage: sh tools/with-node sensor/testing/flood-capture.ts FILE [FLOWS] [NAMED]    (writes a pcap file)
 */

import { closeSync, openSync, writeSync } from 'node:fs';
import { seededRandom } from '#common/random/index.ts';
import { pcapFile } from './capture-files.ts';
import { clientHello, ethernet, reverse, type SegmentOptions, Tcp, tcp, udp } from './frames.ts';

const firstSecond = 1_700_000_040;
const targets = 16;

/** The two ends of named connection `i`, and its host. */
export function namedConnection(i: number): { ends: SegmentOptions; host: string } {
  const from = `192.0.2.${(i % 200) + 1}`;
  const to = `203.0.${113 + ((i / 50_000) | 0)}.${(i % 250) + 1}`;
  // Many connections share a host, as in real traffic.
  const host = `before-${i % 3000}.site-${(i % 3000) % 977}.example`;
  return { ends: { from, fromPort: 10_000 + (i % 50_000), to, toPort: 443 }, host };
}

/** The opening, the hello and the first answer of named connection `i`. */
export function namedFrames(i: number): Uint8Array[] {
  const { ends, host } = namedConnection(i);
  const hello = clientHello({ host, before: 40 });
  return [
    tcp(ends, Tcp.syn, 1000),
    tcp(reverse(ends), Tcp.syn | Tcp.ack, 5000),
    tcp(ends, Tcp.ack | Tcp.push, 1001, hello),
    tcp(reverse(ends), Tcp.ack, 5001),
  ].map((packet) => ethernet(packet));
}

/** One more packet of named connection `i`. */
export function laterFrame(i: number): Uint8Array {
  return ethernet(tcp(namedConnection(i).ends, Tcp.ack, 2000));
}

/**
 * Creates flood frames: `next` returns the same object each time, with a new source, port and kind; a third each are
 * TCP openings, bare TCP segments and datagrams. No two have the same ends.
 */
export function createFlood(seed: number): { next(): Uint8Array } {
  const random = seededRandom(seed);
  const ends = { from: '198.18.0.1', fromPort: 1, to: '192.0.2.1', toPort: 80 };
  const templates = [
    ethernet(tcp(ends, Tcp.syn, 1)),
    ethernet(tcp(ends, Tcp.ack, 1)),
    ethernet(udp(ends, new Uint8Array(12))),
  ];
  let count = 0;
  return {
    next() {
      const frame = templates[count % 3]!;
      // The low bits are a counter, so that no source repeats; the others are random.
      const source = ((1 + (count >>> 24)) << 24) | (count & 0xffffff);
      frame[26] = 11 + (source >>> 24);
      frame[27] = source >>> 16;
      frame[28] = source >>> 8;
      frame[29] = source;
      frame[33] = 1 + (count % targets);
      const port = 1024 + Math.floor(random() * 60_000);
      frame[34] = port >>> 8;
      frame[35] = port;
      count += 1;
      return frame;
    },
  };
}

/** Writes the flood as a pcap file at a rate of `perSecond`, so that it lasts longer than a minute. */
export function writeFlood(path: string, flows: number, named: number, perSecond = 12_500): void {
  const file = openSync(path, 'w');
  const header = pcapFile([]);
  writeSync(file, header);
  const piece = new Uint8Array(1 << 20);
  const view = new DataView(piece.buffer);
  let used = 0;
  const put = (frame: Uint8Array, seconds: number, micros: number) => {
    if (used + 16 + frame.length > piece.length) {
      writeSync(file, piece, 0, used);
      used = 0;
    }
    view.setUint32(used, seconds, true);
    view.setUint32(used + 4, micros, true);
    view.setUint32(used + 8, frame.length, true);
    view.setUint32(used + 12, frame.length, true);
    piece.set(frame, used + 16);
    used += 16 + frame.length;
  };
  for (let i = 0; i < named; i += 1)
    for (const frame of namedFrames(i)) put(frame, firstSecond, i % 1_000_000);
  const flood = createFlood(1);
  for (let i = 0; i < flows; i += 1) {
    put(flood.next(), firstSecond + 1 + Math.floor(i / perSecond), ((i % perSecond) * 1e6) / perSecond);
  }
  const last = firstSecond + 2 + Math.floor(flows / perSecond);
  for (let i = 0; i < named; i += 1) put(laterFrame(i), last, 0);
  writeSync(file, piece, 0, used);
  closeSync(file);
}

if (import.meta.main) {
  const [path, flows, named] = process.argv.slice(2);
  if (!path) {
    console.error('usage: sh tools/with-node sensor/testing/flood-capture.ts FILE [FLOWS] [NAMED]');
    process.exit(2);
  }
  writeFlood(path, Number(flows ?? 1_000_000), Number(named ?? 2000));
}
