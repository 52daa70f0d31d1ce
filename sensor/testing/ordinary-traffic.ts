/**
 * Kinds of heavy ordinary traffic that come near attacks: tunnels and their fragments, QUIC, games, calls, live video, torrents,
 * transfers, servers with many clients. Each is a step of frames of both directions, of IPv4 or IPv6, that may be repeated at any rate.
 */
import { seededRandom } from '#common/random/index.ts';
import type { Thresholds } from '#sensor/detector/index.ts';
import { victim } from './attack-traffic.ts';
import { ethernet, ip, join, reverse, type SegmentOptions, Tcp, tcp, u16, udp } from './frames.ts';

/** What a kind is made of. `local` is the protected address, `peers` are remote ones. */
interface Ends {
  local: string;
  random: () => number;
}

/** Packets of one step, with the peer whose turn it is. `turn` counts the steps of this peer. */
type Step = (ends: Ends, peer: string, turn: number) => Uint8Array[];
type Direction = 'inbound' | 'outbound';
type Metric = 'pps' | 'bps' | 'udp_pps' | 'udp_bps' | 'fragment_pps' | 'icmp_pps' | 'syn_pps';

interface Kind {
  step: Step;
  /** The threshold that the traffic reaches, and the direction that reaches it. */
  metric: Metric;
  /** Peers at most; with divided thresholds there are fewer, of which each has so many steps a second at the threshold. */
  peers: number;
  perPeer: number;
  direction: Direction;
  /** At more times the threshold it would be no such traffic. */
  ratioMax: number;
  /** Steps repeat after some time; not those that open connections, from a port of its own each. */
  repeats: boolean;
  /** The remote addresses, where they are no random ones. */
  remotes?: (version: 4 | 6) => string[];
}

const kind = (step: Step, metric: Metric, peers: number, direction: Direction = 'inbound'): Kind => ({
  ...{ step, metric, peers, direction, perPeer: 20, ratioMax: 20, repeats: true },
});

/** A kind whose steps open connections. */
const opening = (...words: Parameters<typeof kind>): Kind => ({ ...kind(...words), repeats: false });

const bytes = (length: number) => new Uint8Array(length);
const full = 1200;

/** Datagrams to the server and back, on ports of the kind. */
const datagrams =
  (peerPort: number, port: number, into: number, back: number, backEvery: number): Step =>
  ({ local }, peer, turn) => {
    const ends = { from: peer, fromPort: peerPort, to: local, toPort: port };
    const sent = [udp(ends, bytes(into))];
    if (turn % backEvery === 0) sent.push(udp(reverse(ends), bytes(back)));
    return sent;
  };

/** The same, begun by the server. */
const outward =
  (port: number, peerPort: number, out: number, back: number, backEvery: number): Step =>
  ({ local, random }, peer, turn) =>
    datagrams(port, peerPort, out, back, backEvery)({ local: peer, random }, local, turn);

/** A tunnel whose directions have source ports of their own. */
const overlay =
  (port: number, into: number): Step =>
  ({ local, random }, peer, turn) => {
    const own = () => 32_768 + Math.floor(random() * 20_000);
    const sent = [udp({ from: peer, fromPort: own(), to: local, toPort: port }, bytes(into))];
    if (turn % 2 === 0) sent.push(udp({ from: local, fromPort: own(), to: peer, toPort: port }, bytes(90)));
    return sent;
  };

/** What tunnels carry: a packet of another family or of the same, behind the header of the tunnel. */
function inside(protocol: number, length: number): Uint8Array {
  const from = protocol === 41 ? 'fd00::1' : '10.0.0.1';
  const to = protocol === 41 ? 'fd00::2' : '10.0.0.2';
  const packet = udp({ from, fromPort: 8000, to, toPort: 8000 }, bytes(length));
  if (protocol === 47) return join([0, 0, 8, 0], packet);
  // AH: the next header, its own length less two, a number of the association, a sequence, a check value.
  return protocol === 51 ? join([4, 4, 0, 0], bytes(20), packet) : packet;
}

const tunnel = (protocol: number): Step => {
  const hasPacket = [4, 41, 47, 51].includes(protocol);
  const [into, back] = [full, 100].map((length) => (hasPacket ? inside(protocol, length) : bytes(length)));
  return ({ local }, peer, turn) => {
    const sent = [ip(into!, { from: peer, to: local, protocol })];
    if (turn % 3 === 0) sent.push(ip(back!, { from: local, to: peer, protocol }));
    return sent;
  };
};

/** Packets that are too long for the link, each in two fragments, both directions. `port`: of UDP. */
const fragmented =
  (protocol: number, port = 0): Step =>
  ({ local }, peer, turn) => {
    const data = protocol === 17 ? datagram(port, port, 1500) : bytes(1508);
    const sent = fragments(peer, local, protocol, data, turn);
    return turn % 4 === 0 ? [...sent, ...fragments(local, peer, protocol, data, turn)] : sent;
  };

function datagram(fromPort: number, toPort: number, length: number): Uint8Array {
  return join(u16(fromPort), u16(toPort), u16(8 + length), u16(0), bytes(length));
}

function fragments(from: string, to: string, protocol: number, data: Uint8Array, id: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let offset = 0; offset < data.length; offset += 1400) {
    const piece = data.subarray(offset, offset + 1400);
    const more = offset + 1400 < data.length;
    if (!from.includes(':')) pieces.push(ip(piece, { from, to, protocol, id: id & 0xffff, offset, more }));
    else {
      const header = [protocol, 0, ...u16(offset | (more ? 1 : 0)), 0, 0, ...u16(id & 0xffff)];
      pieces.push(ip(join(header, piece), { from, to, protocol: 44 }));
    }
  }
  return pieces;
}

/** A resolver asks, from a port of its own each time; longer answers come in fragments. */
const lookup =
  (answer: number): Step =>
  ({ local, random }, peer, turn) => {
    const port = 1024 + Math.floor(random() * 60_000);
    const ask = { from: local, fromPort: port, to: peer, toPort: 53 };
    if (answer < 1400) return [udp(ask, bytes(45)), udp(reverse(ask), bytes(answer))];
    return [udp(ask, bytes(45)), ...fragments(peer, local, 17, datagram(53, port, answer), turn)];
  };

const handshake = (ends: SegmentOptions) => [
  tcp(ends, Tcp.syn, 1),
  tcp(reverse(ends), Tcp.syn | Tcp.ack, 1),
  tcp(ends, Tcp.ack, 2),
];

/** Segments of connections that last, of which each peer has some. */
const connections =
  (port: number, into: number, back: number, backEvery: number, each = 1): Step =>
  ({ local }, peer, turn) => {
    const ends = { from: peer, fromPort: 40_000 + (turn % each), to: local, toPort: port };
    const sent = turn < each ? handshake(ends) : [];
    sent.push(tcp(ends, Tcp.ack, 2 + turn, bytes(into)));
    if (Math.floor(turn / each) % backEvery === 0)
      sent.push(tcp(reverse(ends), Tcp.ack, 2 + turn, bytes(back)));
    return sent;
  };

/** The same, opened by the server. */
const opened =
  (port: number, out: number, back: number, backEvery: number, each = 1): Step =>
  ({ local, random }, peer, turn) =>
    connections(port, out, back, backEvery, each)({ local: peer, random }, local, turn);

/** A whole connection each turn: it opens, carries segments (above zero: of who opened it) and ends. */
const visits =
  (port: number, carried: readonly number[], isOpenedByServer = false): Step =>
  ({ local }, peer, turn) => {
    const [from, to] = isOpenedByServer ? [local, peer] : [peer, local];
    const ends: SegmentOptions = { from, fromPort: 1024 + (turn % 60_000), to, toPort: port };
    const back = reverse(ends);
    return [
      ...handshake(ends),
      ...carried.map((size) => tcp(size > 0 ? ends : back, Tcp.ack | Tcp.push, 2, bytes(Math.abs(size)))),
      tcp(ends, Tcp.fin | Tcp.ack, 122),
      tcp(back, Tcp.fin | Tcp.ack, 182),
      tcp(ends, Tcp.ack, 123),
    ];
  };

const response = (segments: number) => Array.from({ length: segments }, () => -1400);

const ping: Step = ({ local }, peer) => {
  const echo = (type: number, from: string, to: string) =>
    ip(join([type, 0, 0, 0], bytes(12)), { from, to, protocol: from.includes(':') ? 58 : 1 });
  return local.includes(':')
    ? [echo(128, peer, local), echo(129, local, peer)]
    : [echo(8, peer, local), echo(0, local, peer)];
};

const page = visits(443, [300, -1400, -600]);
const question = datagrams(33_000, 53, 40, 150, 1);

/** Pings, requests by HTTP and questions to a DNS server. */
const checks: Step = (ends, peer, turn) =>
  [ping, page, question, page, question, page][turn % 6]!(ends, peer, turn);

/** Openings to all ports, which are refused. */
const scan: Step = ({ local }, peer, turn) => {
  const ends = { from: peer, fromPort: 50_000, to: local, toPort: 1 + ((turn * 7919) % 65_535) };
  return [tcp(ends, Tcp.syn, 1), tcp(reverse(ends), Tcp.reset | Tcp.ack, 1)];
};

export const ordinaryKinds: Readonly<Record<string, Kind>> = {
  'VXLAN between two servers': kind(overlay(4789, full), 'udp_bps', 1),
  'VXLAN of a Kubernetes cluster': kind(overlay(8472, 200), 'udp_pps', 12),
  'IP in IP of a Kubernetes cluster': kind(tunnel(4), 'pps', 12),
  GENEVE: kind(overlay(6081, 600), 'udp_pps', 3),
  'WireGuard hub': kind(datagrams(51_820, 51_820, full, 96, 2), 'udp_bps', 30),
  'OpenVPN server': kind(datagrams(40_100, 1194, 700, 400, 2), 'udp_pps', 40),
  'IPsec hub': kind(tunnel(50), 'bps', 6),
  'IPsec by UDP': kind(datagrams(4500, 4500, 1300, 120, 3), 'udp_bps', 8),
  'AH between two servers': kind(tunnel(51), 'pps', 1),
  'GRE tunnel': kind(tunnel(47), 'pps', 1),
  '6in4 tunnel': kind(tunnel(41), 'pps', 1),
  L2TPv3: kind(tunnel(115), 'bps', 2),
  SCTP: kind(tunnel(132), 'pps', 20),
  'fragmented GRE tunnel': kind(fragmented(47), 'fragment_pps', 1),
  'fragmented WireGuard tunnel': kind(fragmented(17, 51_820), 'fragment_pps', 4),
  'fragmented ESP tunnel': kind(fragmented(50), 'fragment_pps', 2),
  'QUIC downloads': kind(datagrams(443, 50_000, full, 40, 10), 'udp_bps', 8),
  'QUIC uploads': kind(datagrams(50_000, 443, full, 40, 10), 'udp_bps', 20),
  'QUIC server': kind(datagrams(50_000, 443, 60, full, 1), 'pps', 300, 'outbound'),
  torrent: kind(datagrams(6882, 51_413, 900, 700, 2), 'udp_pps', 200),
  'torrent swarm': kind(datagrams(6881, 6881, 300, 300, 1), 'udp_pps', 1500),
  'game server': kind(datagrams(27_005, 27_015, 60, 200, 1), 'udp_pps', 600),
  'game server that answers seldom': kind(datagrams(27_005, 27_016, 60, 900, 100), 'udp_pps', 4),
  'conference of many members': kind(datagrams(40_002, 10_000, 160, 160, 1), 'udp_pps', 250),
  'relay of a conference': kind(datagrams(40_002, 3478, 900, 900, 1), 'pps', 100, 'outbound'),
  'calls by RTP': kind(datagrams(16_384, 12_000, 172, 172, 1), 'udp_pps', 100),
  'SIP trunk': kind(datagrams(5060, 5060, 500, 450, 1), 'udp_pps', 4),
  'live video by SRT': kind(datagrams(9000, 9001, 1316, 44, 50), 'udp_bps', 3),
  'live video by SRT, out': kind(outward(9001, 9000, 1316, 44, 50), 'bps', 20, 'outbound'),
  'live video by RTP': kind(datagrams(5004, 5004, 1316, 60, 150), 'udp_bps', 3),
  'live video by RTP, out': kind(outward(5004, 5004, full, 60, 200), 'pps', 40, 'outbound'),
  'live video by multicast': {
    ...kind(outward(5004, 5004, 1316, 0, Number.POSITIVE_INFINITY), 'pps', 3, 'outbound'),
    remotes: (version) => [1, 2, 3].map((i) => (version === 4 ? `239.1.1.${i}` : `ff0e::${i}`)),
  },
  'DNS server': kind(datagrams(33_000, 53, 40, 150, 1), 'udp_pps', 300),
  'DNS resolver': kind(lookup(400), 'udp_pps', 300),
  'DNS resolver with long answers': kind(lookup(3000), 'fragment_pps', 6),
  'NTP server': kind(datagrams(123, 123, 48, 48, 1), 'udp_pps', 400),
  'mail burst': opening(
    visits(25, [-60, 30, -90, 200, -30, 1400, 1400, 900, -30], true),
    'pps',
    300,
    'outbound',
  ),
  'CDN pulls': opening(visits(443, [500, ...response(20)]), 'bps', 40, 'outbound'),
  'web without keep-alive': opening(visits(80, [120, -180]), 'pps', 500),
  WebSockets: kind(connections(443, 30, 60, 1), 'pps', 1000),
  'Redis fan-in': kind(connections(6379, 60, 40, 1, 8), 'pps', 30),
  'database fan-in': kind(connections(5432, 80, 300, 1), 'pps', 60),
  'storage replication': kind(connections(7789, 8900, 60, 3), 'bps', 2),
  backup: kind(opened(443, 1400, 0, 2, 8), 'bps', 2, 'outbound'),
  rsync: kind(opened(873, 1400, 300, 1), 'bps', 1, 'outbound'),
  'upload by TCP': kind(connections(443, 1400, 0, 20), 'bps', 2),
  'download by TCP': kind(connections(443, 0, 1400, 1), 'bps', 2, 'outbound'),
  'speed test': kind(connections(8080, 1400, 0, 2, 8), 'bps', 3),
  // A host answers pings by itself, so more than 32 a second of one peer is not called monitoring.
  'monitoring by pings': { ...kind(ping, 'icmp_pps', 4000), perPeer: 2.5, ratioMax: 12 },
  'monitoring from many places': { ...opening(checks, 'pps', 300), perPeer: 8 },
  // With the threshold of all packets, which is five times that of openings, it is a flood. By divided thresholds one packet of a
  // sample stands for too many, so it is less than half of that.
  'port scan': { ...opening(scan, 'syn_pps', 1), ratioMax: 2 },
};

/** So many steps are made; then the second half of them repeats. Making a frame costs more than counting it. */
const madeMax = 4000;

/** Of so many steps the packets are counted; it holds whole cycles of answers. */
const sampleSteps = 600;

export interface OrdinaryOptions {
  version: 4 | 6;
  thresholds: Thresholds;
  seed: number;
  /** How often the threshold is reached; by default once. */
  ratio?: number;
  /** The protected address; by default that of attacks. */
  local?: string;
  /** Its connections are open already. */
  isUnderWay?: boolean;
}

/** Steps of a kind: their frames, and how many a second reach so many times its threshold. */
export function createOrdinary(
  name: string,
  { version, thresholds, seed, ratio = 1, local = victim(version), isUnderWay = false }: OrdinaryOptions,
) {
  const { step, metric, direction, ...one } = ordinaryKinds[name]!;
  const random = seededRandom(seed);
  const byte = () => 1 + Math.floor(random() * 250);
  const stranger = () =>
    version === 4
      ? `${11 + (byte() % 90)}.${byte()}.${byte()}.${byte()}`
      : `2a00:${byte()}:${byte()}::${byte()}`;
  const ends = { local, random };
  const since = isUnderWay ? 1000 : 0;
  const remote = one.remotes?.(version)[0] ?? stranger();
  const sample = Array.from({ length: sampleSteps }, (_, turn) => step(ends, remote, since + turn)).flat();
  const ipOf = version === 4 ? 12 : 8;
  const counted = sample
    .filter((packet) => isFrom(packet, ipOf, local) === (direction === 'outbound'))
    .filter((packet) => metric !== 'syn_pps' || packet[packet.length - 7] === Tcp.syn);
  const isInBits = metric === 'bps' || metric === 'udp_bps';
  const amount = isInBits ? counted.reduce((sum, packet) => sum + packet.length * 8, 0) : counted.length;
  const perSecond = (thresholds[direction][metric] * sampleSteps) / amount;
  const peersMax = Math.max(1, Math.min(one.peers, Math.floor(perSecond / one.perPeer)));
  const peers = one.remotes?.(version) ?? Array.from({ length: peersMax }, stranger);
  const packets = (turn: number) =>
    step(ends, peers[turn % peers.length]!, since + Math.floor(turn / peers.length));
  const made: Uint8Array[][] = [];
  const half = Math.max(madeMax / 2, peers.length * 4);
  let turn = 0;
  return {
    step: () => {
      const at = turn < half ? turn : half + (turn % half);
      const frames = made[at] ?? packets(turn).map((packet) => ethernet(packet));
      if (one.repeats) made[at] = frames;
      turn += 1;
      return frames;
    },
    perSecond: perSecond * ratio,
  };
}

/** True when the packet's source, at this position, is the address. */
function isFrom(packet: Uint8Array, at: number, address: string): boolean {
  const own = ip(new Uint8Array(0), { from: address, to: address, protocol: 0 });
  const length = at === 12 ? 4 : 16;
  return packet.subarray(at, at + length).every((value, i) => value === own[at + i]);
}
