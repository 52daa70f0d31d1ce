/**
 * A mixed capture in memory, identical on every machine: thousands of interleaved connections of the kinds that a
 * hypervisor sees, over IPv4 and IPv6, with and without tags.
 *
 * Full-size packets are truncated to 192 captured bytes, as in a live capture with a snap length; their wire lengths
 * stay.
 *
 * usage: sh tools/with-node sensor/testing/mixed-capture.ts FILE [CONNECTIONS]    (writes a pcap file)
 */

import { writeFileSync } from 'node:fs';
import { seededRandom } from '#common/random/index.ts';
import { pcapFile } from './capture-files.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  ip,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from './frames.ts';

const capturedMax = 192;
const helloCapturedMax = 2048;

export type MixedCapture = ReturnType<typeof createMixedCapture>;

interface Frame {
  bytes: Uint8Array;
  wire: number;
}

/** Creates a capture of about `flows` connections, spread over a minute. */
export function createMixedCapture(flows: number, seed = 1) {
  const random = seededRandom(seed);
  const queue: { frames: Frame[]; next: number }[] = [];
  for (let i = 0; i < flows; i += 1) queue.push({ frames: createFlow(i, random), next: 0 });
  const count = queue.reduce((sum, flow) => sum + flow.frames.length, 0);
  const size = queue.reduce(
    (sum, flow) => sum + flow.frames.reduce((part, frame) => part + frame.bytes.length, 0),
    0,
  );
  const capture = {
    bytes: new Uint8Array(size),
    /** For each frame: its position, captured length and wire length. */
    offsets: new Float64Array(count),
    captured: new Int32Array(count),
    wire: new Int32Array(count),
    /** Milliseconds after the start. */
    times: new Float64Array(count),
    frames: count,
  };
  let at = 0;
  let open = 0;
  for (let frame = 0; frame < count; frame += 1) {
    // A few hundred connections at a time, in random order, as on a busy link.
    while (queue[open]!.next >= queue[open]!.frames.length) open += 1;
    let pick = open + Math.floor(random() * 400);
    if (pick >= queue.length || queue[pick]!.next >= queue[pick]!.frames.length) pick = open;
    const flow = queue[pick]!;
    const { bytes, wire } = flow.frames[flow.next]!;
    flow.next += 1;
    capture.bytes.set(bytes, at);
    capture.offsets[frame] = at;
    capture.captured[frame] = bytes.length;
    capture.wire[frame] = wire;
    capture.times[frame] = (frame / count) * 50_000;
    at += bytes.length;
  }
  return capture;
}

function createFlow(number: number, random: () => number): Frame[] {
  const ends = createEnds(number, random);
  const kind = random();
  const tags = random() < 0.15 ? (random() < 0.3 ? [100, 7] : [100 + (number % 20)]) : [];
  const packets = createPackets(kind, number, ends, random);
  return packets.map(({ packet, extra }) => {
    const frame = ethernet(packet, { tags });
    const max = extra > 0 ? capturedMax : helloCapturedMax;
    return { bytes: frame.subarray(0, max), wire: frame.length + extra };
  });
}

interface Planned {
  packet: Uint8Array;
  /** Bytes on the wire that are not written here. */
  extra: number;
}

function createPackets(kind: number, number: number, ends: SegmentOptions, random: () => number): Planned[] {
  const host = `host-${number % 900}.example-${number % 120}.com`;
  if (kind < 0.42)
    return createConnection({ ...ends, toPort: 443 }, clientHello({ host, before: 20 }), random);
  if (kind < 0.5)
    return createConnection({ ...ends, toPort: 443 }, clientHello({ host, before: 1200 }), random);
  if (kind < 0.62) {
    const request = ascii(
      `GET /index.html HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n`,
    );
    return createConnection({ ...ends, toPort: 80 }, request, random);
  }
  if (kind < 0.64) {
    return createConnection(
      { ...ends, toPort: 3128 },
      ascii(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
      random,
    );
  }
  if (kind < 0.76) return createLookup({ ...ends, toPort: 53 }, host, number);
  if (kind < 0.9) return createDatagrams({ ...ends, toPort: 443 }, random);
  return createProtocol(ends, kind < 0.94 ? 1 : kind < 0.97 ? 47 : 50, random);
}

function createEnds(number: number, random: () => number): SegmentOptions {
  const local = number % 200;
  const remote = Math.floor(random() * 5000);
  const isIpv6 = random() < 0.3;
  const fromPort = 20_000 + Math.floor(random() * 40_000);
  return isIpv6
    ? {
        from: `2001:db8:1::${local + 1}`,
        to: `2600:1000:${(remote % 99) + 1}::${remote + 1}`,
        fromPort,
        toPort: 0,
      }
    : {
        from: `192.0.2.${local + 1}`,
        to: `93.184.${remote % 250}.${(remote >> 5) + 1}`,
        fromPort,
        toPort: 0,
      };
}

/** A whole TCP connection: handshake, the client's first data in segments of 1,400, data in both directions, close. */
function createConnection(ends: SegmentOptions, first: Uint8Array, random: () => number): Planned[] {
  const back = reverse(ends);
  let sequence = Math.floor(random() * 4_000_000_000);
  let answer = Math.floor(random() * 4_000_000_000);
  const plan: Planned[] = [
    { packet: tcp(ends, Tcp.syn, sequence), extra: 0 },
    { packet: tcp(back, Tcp.syn | Tcp.ack, answer), extra: 0 },
    { packet: tcp(ends, Tcp.ack, sequence + 1), extra: 0 },
  ];
  sequence += 1;
  answer += 1;
  for (let at = 0; at < first.length; at += 1400) {
    const part = first.subarray(at, at + 1400);
    plan.push({ packet: tcp(ends, Tcp.push | Tcp.ack, sequence, part), extra: 0 });
    sequence += part.length;
  }
  const rounds = 4 + Math.floor(random() * 24);
  for (let round = 0; round < rounds; round += 1) {
    plan.push(longSegment(back, answer));
    answer += 1400;
    plan.push({ packet: tcp(ends, Tcp.ack, sequence), extra: 0 });
  }
  plan.push({ packet: tcp(ends, Tcp.fin | Tcp.ack, sequence), extra: 0 });
  plan.push({ packet: tcp(back, Tcp.fin | Tcp.ack, answer), extra: 0 });
  return plan;
}

/** A segment of 1,400 bytes of which the first hundred are written. */
function longSegment(ends: SegmentOptions, sequence: number): Planned {
  const packet = tcp(ends, Tcp.ack, sequence, new Uint8Array(100).fill(0x99));
  return lengthen(packet, 1300);
}

/** Increases the length in the IP header by `extra` bytes. */
function lengthen(packet: Uint8Array, extra: number): Planned {
  const at = packet[0]! >> 4 === 6 ? 4 : 2;
  const length = packet[at]! * 256 + packet[at + 1]! + extra;
  packet[at] = length >> 8;
  packet[at + 1] = length & 255;
  return { packet, extra };
}

function createLookup(ends: SegmentOptions, name: string, id: number): Planned[] {
  const answers = [
    { name, ttl: 300, cname: `edge.${name}` },
    { name: `edge.${name}`, ttl: 60, address: '93.184.216.34' },
  ];
  return [
    { packet: udp(ends, dnsMessage({ id: id & 0xffff, name })), extra: 0 },
    { packet: udp(reverse(ends), dnsMessage({ id: id & 0xffff, name, answers })), extra: 0 },
  ];
}

function createDatagrams(ends: SegmentOptions, random: () => number): Planned[] {
  const plan: Planned[] = [];
  const rounds = 2 + Math.floor(random() * 20);
  for (let round = 0; round < rounds; round += 1) {
    const direction = random() < 0.6 ? reverse(ends) : ends;
    plan.push(lengthen(udp(direction, new Uint8Array(80).fill(0x40)), 1100));
  }
  return plan;
}

function createProtocol(ends: SegmentOptions, protocol: number, random: () => number): Planned[] {
  const plan: Planned[] = [];
  const rounds = 1 + Math.floor(random() * 12);
  for (let round = 0; round < rounds; round += 1) {
    const direction = round % 2 === 0 ? ends : reverse(ends);
    const packet = ip(new Uint8Array(84).fill(8), { from: direction.from, to: direction.to, protocol });
    plan.push({ packet, extra: 0 });
  }
  return plan;
}

if (import.meta.main) {
  const [path, connections] = process.argv.slice(2);
  if (!path) {
    console.error('usage: sh tools/with-node sensor/testing/mixed-capture.ts FILE [CONNECTIONS]');
    process.exit(2);
  }
  const { bytes, offsets, captured, wire, times, frames } = createMixedCapture(Number(connections ?? 20_000));
  const stored = Array.from({ length: frames }, (_, i) => ({
    bytes: bytes.subarray(offsets[i]!, offsets[i]! + captured[i]!),
    seconds: 1_700_000_040 + Math.floor(times[i]! / 1000),
    nanoseconds: Math.floor((times[i]! % 1000) * 1000) * 1000,
    wireLength: wire[i]!,
  }));
  writeFileSync(path, pcapFile(stored));
}
