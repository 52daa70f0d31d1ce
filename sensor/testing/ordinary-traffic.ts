/**
 * Kinds of ordinary traffic that come near attacks: tunnels and their fragments, QUIC, games, calls, live video, torrents, servers with
 * many clients. Each is a step of frames of both directions, of IPv4 or IPv6, that may be repeated at any rate.
 */
import { seededRandom } from '#common/random/index.ts';
import type { Thresholds } from '#sensor/detector/index.ts';
import { victim } from './attack-traffic.ts';
import { ethernet, ip, join, reverse, type SegmentOptions, Tcp, tcp, u16, udp } from './frames.ts';

type Direction = 'inbound' | 'outbound';

/** What a kind is made of. `local` is the protected address, `peers` are remote ones. */
interface Ends {
  local: string;
  peers: readonly string[];
  random: () => number;
}

interface Kind {
  peers: number;
  /** The threshold that the traffic reaches, and the direction that reaches it. */
  metric: 'pps' | 'bps' | 'udp_pps' | 'udp_bps' | 'fragment_pps' | 'icmp_pps';
  direction: Direction;
  /** Packets of one step, with the peer whose turn it is. */
  step: (ends: Ends, peer: string, turn: number) => Uint8Array[];
}

const bytes = (length: number) => new Uint8Array(length);
const full = 1200;

/** Datagrams to the server and back, on ports of the kind. */
const datagrams = (peerPort: number, port: number, into: number, back: number, backEvery: number) =>
  (({ local }, peer, turn) => {
    const ends = { from: peer, fromPort: peerPort, to: local, toPort: port };
    const sent = [udp(ends, bytes(into))];
    if (turn % backEvery === 0) sent.push(udp(reverse(ends), bytes(back)));
    return sent;
  }) satisfies Kind['step'];

/** A tunnel whose directions have source ports of their own. */
const overlay = (port: number, into: number) =>
  (({ local, random }, peer, turn) => {
    const own = () => 32_768 + Math.floor(random() * 20_000);
    const sent = [udp({ from: peer, fromPort: own(), to: local, toPort: port }, bytes(into))];
    if (turn % 2 === 0) sent.push(udp({ from: local, fromPort: own(), to: peer, toPort: port }, bytes(90)));
    return sent;
  }) satisfies Kind['step'];

const raw = (protocol: number) =>
  (({ local }, peer, turn) => {
    const sent = [ip(bytes(full), { from: peer, to: local, protocol })];
    if (turn % 3 === 0) sent.push(ip(bytes(100), { from: local, to: peer, protocol }));
    return sent;
  }) satisfies Kind['step'];

/** Packets that are too long for the link, each in two fragments, both directions. */
const fragmented = (protocol: number) =>
  (({ local }, peer, turn) => [
    ...fragments(peer, local, protocol, turn),
    ...(turn % 4 === 0 ? fragments(local, peer, protocol, turn) : []),
  ]) satisfies Kind['step'];

function fragments(from: string, to: string, protocol: number, turn: number): Uint8Array[] {
  const header = protocol === 17 ? join(u16(51_820), u16(51_820), u16(1508), u16(0)) : bytes(8);
  return [0, 1400].map((offset) => {
    const data = offset === 0 ? join(header, bytes(1392)) : bytes(108);
    if (!from.includes(':'))
      return ip(data, { from, to, protocol, id: turn & 0xffff, offset, more: offset === 0 });
    const id = [0, 0, ...u16(turn & 0xffff)];
    return ip(join([protocol, 0], u16(offset | (offset === 0 ? 1 : 0)), id, data), {
      from,
      to,
      protocol: 44,
    });
  });
}

/** Segments of an open connection. */
const connection = (into: number, back: number, backEvery: number) =>
  (({ local }, peer, turn) => {
    const ends = { from: peer, fromPort: 40_000, to: local, toPort: 443 };
    const sent = [tcp(ends, Tcp.ack, turn, bytes(into))];
    if (turn % backEvery === 0) sent.push(tcp(reverse(ends), Tcp.ack, turn, bytes(back)));
    return sent;
  }) satisfies Kind['step'];

/** A request without keep-alive: its connection opens, answers and ends. */
const request: Kind['step'] = ({ local }, peer, turn) => {
  const ends: SegmentOptions = { from: peer, fromPort: 1024 + (turn % 60_000), to: local, toPort: 80 };
  const back = reverse(ends);
  return [
    tcp(ends, Tcp.syn, 1),
    tcp(back, Tcp.syn | Tcp.ack, 1),
    tcp(ends, Tcp.ack, 2),
    tcp(ends, Tcp.ack | Tcp.push, 2, bytes(120)),
    tcp(back, Tcp.ack | Tcp.push, 2, bytes(180)),
    tcp(ends, Tcp.fin | Tcp.ack, 122),
    tcp(back, Tcp.fin | Tcp.ack, 182),
    tcp(ends, Tcp.ack, 123),
  ];
};

const ping: Kind['step'] = ({ local }, peer) => {
  const echo = (type: number, from: string, to: string) =>
    ip(join([type, 0, 0, 0], bytes(12)), { from, to, protocol: from.includes(':') ? 58 : 1 });
  return local.includes(':')
    ? [echo(128, peer, local), echo(129, local, peer)]
    : [echo(8, peer, local), echo(0, local, peer)];
};

export const ordinaryKinds: Readonly<Record<string, Kind>> = {
  'VXLAN between two servers': {
    ...{ peers: 1, metric: 'udp_bps', direction: 'inbound' },
    step: overlay(4789, full),
  },
  'VXLAN of a Kubernetes cluster': {
    ...{ peers: 12, metric: 'udp_pps', direction: 'inbound' },
    step: overlay(8472, 200),
  },
  GENEVE: { ...{ peers: 3, metric: 'udp_pps', direction: 'inbound' }, step: overlay(6081, 600) },
  'WireGuard hub': {
    ...{ peers: 30, metric: 'udp_bps', direction: 'inbound' },
    step: datagrams(51_820, 51_820, full, 96, 2),
  },
  'OpenVPN server': {
    ...{ peers: 40, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(40_100, 1194, 700, 400, 2),
  },
  'IPsec hub': { ...{ peers: 6, metric: 'bps', direction: 'inbound' }, step: raw(50) },
  'GRE tunnel': { ...{ peers: 1, metric: 'pps', direction: 'inbound' }, step: raw(47) },
  '6in4 tunnel': { ...{ peers: 1, metric: 'pps', direction: 'inbound' }, step: raw(41) },
  SCTP: { ...{ peers: 20, metric: 'pps', direction: 'inbound' }, step: raw(132) },
  'fragmented GRE tunnel': {
    ...{ peers: 1, metric: 'fragment_pps', direction: 'inbound' },
    step: fragmented(47),
  },
  'fragmented WireGuard tunnel': {
    ...{ peers: 4, metric: 'fragment_pps', direction: 'inbound' },
    step: fragmented(17),
  },
  'fragmented ESP tunnel': {
    ...{ peers: 2, metric: 'fragment_pps', direction: 'inbound' },
    step: fragmented(50),
  },
  'QUIC downloads': {
    ...{ peers: 8, metric: 'udp_bps', direction: 'inbound' },
    step: datagrams(443, 50_000, full, 40, 10),
  },
  'QUIC server': {
    ...{ peers: 300, metric: 'pps', direction: 'outbound' },
    step: datagrams(50_000, 443, 60, full, 1),
  },
  torrent: {
    ...{ peers: 200, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(6882, 51_413, 900, 700, 2),
  },
  'game server': {
    ...{ peers: 600, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(27_005, 27_016, 60, 200, 1),
  },
  'game server that answers seldom': {
    ...{ peers: 4, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(27_005, 27_016, 60, 900, 100),
  },
  'conference of many members': {
    ...{ peers: 250, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(40_002, 10_000, 160, 160, 1),
  },
  'live video by SRT': {
    ...{ peers: 3, metric: 'udp_bps', direction: 'inbound' },
    step: datagrams(9000, 9001, 1316, 44, 50),
  },
  'live video by RTP, out': {
    ...{ peers: 40, metric: 'pps', direction: 'outbound' },
    step: ({ local }, peer, turn) => {
      const ends = { from: local, fromPort: 5004, to: peer, toPort: 5004 };
      return [udp(ends, bytes(full)), ...(turn % 200 === 0 ? [udp(reverse(ends), bytes(60))] : [])];
    },
  },
  'DNS server': {
    ...{ peers: 300, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(33_000, 53, 40, 150, 1),
  },
  'NTP server': {
    ...{ peers: 400, metric: 'udp_pps', direction: 'inbound' },
    step: datagrams(123, 123, 48, 48, 1),
  },
  'database fan-in': { ...{ peers: 60, metric: 'pps', direction: 'inbound' }, step: connection(80, 300, 1) },
  'upload by TCP': { ...{ peers: 2, metric: 'bps', direction: 'inbound' }, step: connection(1400, 0, 20) },
  'download by TCP': { ...{ peers: 2, metric: 'bps', direction: 'outbound' }, step: connection(0, 1400, 1) },
  'web without keep-alive': { ...{ peers: 500, metric: 'pps', direction: 'inbound' }, step: request },
  'monitoring by pings': { ...{ peers: 40, metric: 'icmp_pps', direction: 'inbound' }, step: ping },
};

/** Steps of a kind: their frames, and how many a second reach its threshold. */
export function createOrdinary(name: string, version: 4 | 6, thresholds: Thresholds, seed: number) {
  const kind = ordinaryKinds[name]!;
  const random = seededRandom(seed);
  const byte = () => 1 + Math.floor(random() * 250);
  const peers = Array.from({ length: kind.peers }, () =>
    version === 4
      ? `${11 + (byte() % 90)}.${byte()}.${byte()}.${byte()}`
      : `2a00:${byte()}:${byte()}::${byte()}`,
  );
  const ends = { local: victim(version), peers, random };
  let turn = 0;
  const packets = () => {
    // A peer's own turns decide when it is answered.
    const peer = peers[turn % peers.length]!;
    const frames = kind.step(ends, peer, Math.floor(turn / peers.length));
    turn += 1;
    return frames;
  };
  const sample = Array.from({ length: Math.max(200, kind.peers) }, packets);
  const ipOf = version === 4 ? 12 : 8;
  const local = sample
    .flat()
    .filter((packet) => isFrom(packet, ipOf, ends.local) === (kind.direction === 'outbound'));
  const amount =
    kind.metric === 'bps' || kind.metric === 'udp_bps'
      ? local.reduce((sum, packet) => sum + packet.length * 8, 0)
      : local.length;
  turn = 0;
  return {
    step: () => packets().map((packet) => ethernet(packet)),
    perSecond: (thresholds[kind.direction][kind.metric] * sample.length) / amount,
  };
}

/** True when the packet's source, at this position, is the address. */
function isFrom(packet: Uint8Array, at: number, address: string): boolean {
  const own = ip(new Uint8Array(0), { from: address, to: address, protocol: 0 });
  const length = at === 12 ? 4 : 16;
  return packet.subarray(at, at + length).every((value, i) => value === own[at + i]);
}
