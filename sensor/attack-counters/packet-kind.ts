/**
 * What a packet is for the attack detector. Every IP packet has exactly one kind, so kinds add up to the total.
 *
 * A packet is two-way when its pair of addresses converses (`pair-table.ts`), or when it is a segment of a connection that the other end
 * accepted (`Exchange`). The other end of a spoofed packet never does either.
 */
import { type Packet, Protocol } from '#sensor/capture/index.ts';

export const Kind = {
  /** TCP SYN without ACK, and with it. */
  opening: 0,
  openingAnswer: 1,
  /** Other TCP segments of one-way flows. */
  segment: 2,
  reset: 3,
  /** TCP segments that are two-way; and all else that established pairs carry: datagrams, fragments, tunnels, pings. */
  twoWaySegment: 4,
  twoWayDatagram: 5,
  /** UDP from a port of a service that is used for amplification, on a one-way flow and on a two-way flow. */
  reflection: 6,
  twoWayReflection: 7,
  /** Other UDP of one-way flows. */
  datagram: 8,
  icmp: 9,
  /** ICMP that answers another packet: echo replies and errors. */
  icmpAnswer: 10,
  /** Fragments, but for the first of an amplified answer. */
  fragment: 11,
  /** IP protocols other than TCP, UDP and ICMP, of one-way flows: GRE, IP in IP, ESP, AH, SCTP and the rest. */
  protocol: 12,
  /** UDP of a flow in which the other end has sent, from other ports, while the pair is not established. */
  reply: 13,
} as const;

export const kindCount = 14;

/**
 * Source ports of amplification: QOTD, CharGEN, DNS, TFTP, portmap, NTP, NetBIOS, SNMP, CLDAP, SLP, RIPv1, OpenVPN,
 * MSSQL, SSDP, ARD, STUN, WSD, SIP, Sentinel, mDNS, CoAP, BitTorrent DHT, Ubiquiti, memcached, Steam, Quake, DHDiscover.
 */
const amplificationPorts = [
  17, 19, 53, 69, 111, 123, 137, 161, 389, 427, 520, 1194, 1434, 1900, 3283, 3478, 3702, 5060, 5093, 5353,
  5683, 6881, 10001, 11211, 27015, 27960, 37810,
];
/** Those of sessions in which both ends go on talking; all others answer single questions. */
const sessionPorts = new Set([1194, 3478, 5060, 6881, 27015, 27960]);

/** True for a port of amplification whose service answers each question by itself: who sends much from it reflects. */
export function reflectsFrom(port: number): boolean {
  return datagramKind(port) === Kind.reflection && !sessionPorts.has(port);
}

/** A bit for each port: 8 KiB, because the ports of a flood are read at random. */
const amplificationBits = new Int32Array(65_536 / 32);
for (const port of amplificationPorts) amplificationBits[port >>> 5]! |= 1 << (port & 31);

const echoReply = 0;
const echoReply6 = 129;
const icmpAnswers = new Set([echoReply, 3, 4, 11, 12]);
const icmp6Answers = new Set([1, 2, 3, 4, echoReply6]);

/** The kinds of TCP packets by their flags. */
const kindOfFlags = Uint8Array.from({ length: 256 }, (_, flags) => {
  if ((flags & 4) !== 0) return Kind.reset;
  if ((flags & 2) !== 0) return (flags & 16) !== 0 ? Kind.openingAnswer : Kind.opening;
  return Kind.segment;
});

/** The packet's kind if its flow is one-way. */
export function kindOf(p: Packet): number {
  if (p.isFragment) {
    // The first fragment of an amplified answer says which service sent it.
    const isAnswer = p.protocol === Protocol.udp && datagramKind(p.sourcePort) === Kind.reflection;
    return isAnswer ? Kind.reflection : Kind.fragment;
  }
  if (p.protocol === Protocol.tcp) return p.tcpFlags < 0 ? Kind.segment : kindOfFlags[p.tcpFlags & 0xff]!;
  return p.protocol === Protocol.udp ? datagramKind(p.sourcePort) : kindWithoutPorts(p);
}

function kindWithoutPorts(p: Packet): number {
  const kind = plainKindOf(p.protocol);
  if (kind !== Kind.icmp) return kind;
  return isAnswer(p, p.protocol === Protocol.icmp ? icmpAnswers : icmp6Answers) ? Kind.icmpAnswer : Kind.icmp;
}

/** The kind of a protocol's packets, if their flow is one-way and they are whole, answer nothing and open nothing. */
export function plainKindOf(protocol: number): number {
  switch (protocol) {
    case Protocol.tcp:
      return Kind.segment;
    case Protocol.udp:
      return Kind.datagram;
    case Protocol.icmp:
    case Protocol.icmp6:
      return Kind.icmp;
    default:
      return Kind.protocol;
  }
}

/** The kind of UDP from a port, if its flow is one-way. */
export function datagramKind(sourcePort: number): number {
  return ((amplificationBits[sourcePort >>> 5]! >>> (sourcePort & 31)) & 1) === 1
    ? Kind.reflection
    : Kind.datagram;
}

/** The kind of a packet in whose flow the other end has sent. */
export const twoWayKindOf = Uint8Array.from({ length: kindCount }, (_, kind) => kind);
twoWayKindOf[Kind.segment] = Kind.twoWaySegment;
twoWayKindOf[Kind.reflection] = Kind.twoWayReflection;
twoWayKindOf[Kind.datagram] = Kind.reply;

/** True for ICMP errors, such as port unreachable: they refuse a packet, and are no part of a conversation. */
export function isRefusal(p: Packet, kind: number): boolean {
  return (
    kind === Kind.icmpAnswer &&
    p.bytes[p.transportAt] !== (p.protocol === Protocol.icmp ? echoReply : echoReply6)
  );
}

function isAnswer(p: Packet, types: ReadonlySet<number>): boolean {
  return p.transportAt < p.payloadEnd && types.has(p.bytes[p.transportAt]!);
}
