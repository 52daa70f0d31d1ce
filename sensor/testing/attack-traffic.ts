/**
 * Traffic for the attack detector: floods of every class at any rate and from any moment, and ordinary traffic that looks
 * like them. Frames are spaced evenly, so that a rate is exact in every second.
 */
import { seededRandom } from '#common/random/index.ts';
import { type Detector, defaultThresholds, type Incident, type Thresholds } from '#sensor/detector/index.ts';
import type { StoredFrame } from './capture-files.ts';
import {
  dnsMessage,
  ethernet,
  ip,
  join,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  u16,
  udp,
} from './frames.ts';

export type FloodClass = Exclude<Incident['class'], 'high_volume' | 'other' | 'reflector'>;

export const floodClasses: readonly FloodClass[] = [
  'fragment_flood',
  'amplification',
  'syn_flood',
  'synack_reflection',
  'ack_flood',
  'rst_flood',
  'udp_flood',
  'icmp_flood',
  'protocol_flood',
  'connection_flood',
];

export interface FloodShape {
  class: FloodClass;
  version: 4 | 6;
  direction: Incident['direction'];
  /** Rate divided by the threshold of the class. */
  ratio: number;
}

/** The class by which a flood is found. */
export function foundClass({ class: name, direction }: FloodShape): Incident['class'] {
  return name === 'amplification' && direction === 'outbound' ? 'reflector' : name;
}

/** Default thresholds divided by `divisor`, so that a test needs fewer packets. */
export function dividedThresholds(divisor: number): Thresholds {
  const of = (direction: 'inbound' | 'outbound') =>
    Object.fromEntries(
      Object.entries(defaultThresholds[direction]).map(([metric, value]) => [metric, value / divisor]),
    ) as unknown as Thresholds['inbound'];
  return { inbound: of('inbound'), outbound: of('outbound') };
}

/** The protected address. */
export function victim(version: 4 | 6): string {
  return version === 4 ? '192.0.2.7' : '2001:db8:7::7';
}

/** Random unicast address outside the protected prefixes. */
function stranger(version: 4 | 6, random: () => number): string {
  const byte = () => Math.floor(random() * 256);
  if (version === 4) return `${11 + Math.floor(random() * 90)}.${byte()}.${byte()}.${1 + (byte() % 254)}`;
  const group = () => Math.floor(random() * 65_536).toString(16);
  return `2a00:${group()}:${group()}::${(1 + Math.floor(random() * 65_000)).toString(16)}`;
}

const amplifiedBytes = 460;
/** Packets of a flood repeat after as many; making one costs more than counting it. */
const differentPackets = 500;

/** Packets a second at which the class stands at its threshold. */
export function packetsAtThreshold({ class: name, direction }: FloodShape, thresholds: Thresholds): number {
  const one = thresholds[direction];
  if (direction === 'outbound' && name !== 'syn_flood' && name !== 'amplification') return one.pps;
  switch (name) {
    case 'fragment_flood':
      return one.fragment_pps;
    case 'amplification':
      return one.amplification_spread_bps / 8 / (amplifiedBytes + 28);
    case 'syn_flood':
      return one.syn_pps;
    case 'udp_flood':
      return one.udp_pps;
    case 'icmp_flood':
      return one.icmp_pps;
    case 'connection_flood':
      return one.connections_per_second;
    default:
      return one.pps;
  }
}

/** Creates the frames of one step of a flood: one packet, or the handshake of one connection. */
export function createFlood(shape: FloodShape, seed: number): () => Uint8Array[] {
  const random = seededRandom(seed);
  const { version, direction } = shape;
  const local = victim(version);
  const port = () => 1024 + Math.floor(random() * 60_000);
  const ends = (fromPort: number, toPort: number): SegmentOptions => {
    const remote = stranger(version, random);
    return direction === 'inbound'
      ? { from: remote, fromPort, to: local, toPort }
      : { from: local, fromPort, to: remote, toPort };
  };
  const raw = (protocol: number, payload: Uint8Array, more: { more?: boolean; id?: number } = {}) => {
    const { from, to } = ends(1, 1);
    return ip(payload, { from, to, protocol, ...more });
  };
  const packet = (): Uint8Array[] => {
    switch (shape.class) {
      case 'fragment_flood':
        return [
          version === 6 ? fragment6(ends(1, 1)) : raw(17, new Uint8Array(64), { more: true, id: port() }),
        ];
      case 'amplification':
        return [udp(ends(123, port()), new Uint8Array(amplifiedBytes + (version === 6 ? -20 : 0)))];
      case 'syn_flood':
        return [tcp(ends(port(), 443), Tcp.syn, port())];
      case 'synack_reflection':
        return [tcp(ends(443, port()), Tcp.syn | Tcp.ack, port())];
      case 'ack_flood':
        return [tcp(ends(port(), 443), Tcp.ack, port())];
      case 'rst_flood':
        return [tcp(ends(port(), 443), Tcp.reset, port())];
      case 'udp_flood':
        return [udp(ends(port(), 9000), new Uint8Array(20))];
      case 'icmp_flood':
        return [raw(version === 4 ? 1 : 58, join([version === 4 ? 8 : 128, 0, 0, 0], u16(port()), u16(1)))];
      case 'protocol_flood':
        return [raw(132, join(u16(port()), u16(9), new Uint8Array(12)))];
      case 'connection_flood': {
        const connection = ends(port(), 443);
        return [
          tcp(connection, Tcp.syn, 1),
          tcp(reverse(connection), Tcp.syn | Tcp.ack, 1),
          tcp(connection, Tcp.ack, 2),
        ];
      }
    }
  };
  const next = () => packet().map((one) => ethernet(one));
  // A second handshake between the same two sockets completes no new connection.
  if (shape.class === 'connection_flood') return next;
  const made = Array.from({ length: differentPackets }, next);
  let at = 0;
  return () => made[at++ % differentPackets]!;
}

function fragment6({ from, to }: SegmentOptions): Uint8Array {
  const header = [17, 0, ...u16(1), 0, 0, 0, 7];
  return ip(join(header, new Uint8Array(64)), { from, to, protocol: 44 });
}

/** Both directions of a transfer: full packets from `from`, an acknowledgement for every second one. */
export function createTransfer(transport: 'tcp' | 'udp', from: string, to: string): () => Uint8Array[] {
  const ends: SegmentOptions = { from, fromPort: 443, to, toPort: 40_000 };
  const data = new Uint8Array(1420);
  const full = ethernet(transport === 'tcp' ? tcp(ends, Tcp.ack, 1, data) : udp(ends, data));
  const back = reverse(ends);
  const acknowledgement = ethernet(
    transport === 'tcp' ? tcp(back, Tcp.ack, 1) : udp(back, new Uint8Array(30)),
  );
  return () => [full, full, acknowledgement];
}

/** A client of a busy web server: handshake, request, response. */
export function createCrowd(version: 4 | 6, seed: number): () => Uint8Array[] {
  const random = seededRandom(seed);
  return () => {
    const port = 1024 + Math.floor(random() * 60_000);
    const ends = { from: stranger(version, random), fromPort: port, to: victim(version), toPort: 443 };
    const back = reverse(ends);
    return [
      tcp(ends, Tcp.syn, 1),
      tcp(back, Tcp.syn | Tcp.ack, 1),
      tcp(ends, Tcp.ack, 2),
      tcp(ends, Tcp.ack | Tcp.push, 2, new Uint8Array(300)),
      tcp(back, Tcp.ack | Tcp.push, 2, new Uint8Array(1400)),
      tcp(ends, Tcp.ack, 302),
    ].map((one) => ethernet(one));
  };
}

/** A resolver's client. */
export function createLookups(seed: number): () => Uint8Array[] {
  const random = seededRandom(seed);
  return () => {
    const id = Math.floor(random() * 65_536);
    const ends = { from: victim(4), fromPort: 1024 + (id % 60_000), to: '203.0.113.53', toPort: 53 };
    const name = `host-${id}.example`;
    const answers = [{ name, ttl: 60, address: '203.0.113.9' }];
    return [
      ethernet(udp(ends, dnsMessage({ id, name }))),
      ethernet(udp(reverse(ends), dnsMessage({ id, name, answers }))),
    ];
  };
}

/** A stream of steps at a rate, from a moment to another, in seconds. */
export interface Stream {
  step: () => Uint8Array[];
  perSecond: number;
  from: number;
  to: number;
}

/** Start of tests: a full second. */
export const startSecond = 1_700_000_000;

/** The frames of streams in the order of time. */
export function* playStreams(streams: readonly Stream[]): Generator<{ at: number; frame: Uint8Array }> {
  const due = streams.map(({ from }) => from);
  const counts = streams.map(() => 0);
  for (;;) {
    let next = -1;
    for (let i = 0; i < streams.length; i += 1)
      if (due[i]! < streams[i]!.to && (next < 0 || due[i]! < due[next]!)) next = i;
    if (next < 0) return;
    const stream = streams[next]!;
    for (const frame of stream.step()) yield { at: startSecond + due[next]!, frame };
    counts[next]! += 1;
    due[next] = stream.from + counts[next]! / stream.perSecond;
  }
}

/** Passes the streams to a detector. */
export function observeStreams(detector: Detector, streams: readonly Stream[]): void {
  for (const { at, frame } of playStreams(streams)) observeFrame(detector, frame, at);
}

/** Passes one frame at a moment, in unix seconds. */
export function observeFrame(detector: Detector, frame: Uint8Array, at: number, segments = 1): void {
  const seconds = Math.floor(at);
  const nanoseconds = Math.floor((at - seconds) * 1e9);
  detector.observe(frame, 0, frame.length, frame.length, seconds, nanoseconds, 1, segments);
}

/** The same frames for a capture file. */
export function storedStreams(streams: readonly Stream[]): StoredFrame[] {
  return Array.from(playStreams(streams), ({ at, frame }) => {
    const seconds = Math.floor(at);
    return { bytes: frame, seconds, nanoseconds: Math.floor((at - seconds) * 1e9) };
  });
}
