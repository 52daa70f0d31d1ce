/**
 * A flow's record: where its values lie, and what single packets change in it besides its counters.
 */
import { type Packet, Protocol } from './packet.ts';

/** Words of a record; a side is 0 for the lower socket, 1 for the higher. */
export const flowWords = 32;
/**
 * Positions of values in a record, in words. The first half, one line of the processor's cache, is what finding a flow
 * and counting need.
 */
export const Field = {
  lower: 0,
  higher: 4,
  ports: 8,
  /** Protocol, version and tunnel. */
  meta: 9,
  /** Two doubles, at these positions divided by two. */
  bytes: 10,
  packets: 14,
  /** Milliseconds after the minute's start plus one, 0 for never. */
  lastSent: 16,
  lastSeen: 18,
  flags: 19,
  name: 20,
  /** Three words for each side: expected sequence, mode and consumed bytes, lent buffer. */
  stream: 21,
  initialSequence: 27,
  /** Two words for each side. */
  mac: 28,
} as const;

/** Where the evidence of a flow's name lies in its flags. */
const evidenceShift = 20;
const evidenceMask = 7 << evidenceShift;

/** What a flow's name rests on. */
export function evidenceOf(words: Int32Array, base: number): number {
  return (words[base + Field.flags]! & evidenceMask) >>> evidenceShift;
}

/** Names a flow. `name` is an id, -1 for none. */
export function setName(words: Int32Array, base: number, name: number, evidence: number): void {
  words[base + Field.name] = name + 1;
  words[base + Field.flags] = (words[base + Field.flags]! & ~evidenceMask) | (evidence << evidenceShift);
}

/** Bits of `Field.flags`. */
export const Flag = {
  alive: 1,
  clientIsHigher: 2,
  /** The client is known, not assumed. */
  clientIsSure: 4,
  /** Both sides have sent. */
  answered: 8,
  /** Of the two `fin` bits, the second is for the higher side. */
  fin: 16,
  reset: 64,
  unanswered: 128,
  lowerIsLocal: 256,
  higherIsLocal: 512,
  /** Of the two, the second is for the higher side. */
  macConflict: 1024,
  inner: 4096,
  /** Of the two, the second is for the higher side. */
  sent: 8192,
  /** The start of a TCP connection was seen; `initialSequence` is its client's. */
  handshakeSeen: 32768,
  /** Whoever opened the TCP connection sent more than the opening. */
  confirmed: 65536,
  /** One request and one answer, not of TCP: nothing more is to come. */
  exchange: 131072,
  /** A TCP segment with data came, from either side. */
  data: 262144,
} as const;

/** True when a reset or both ends' FIN were seen. */
export function isClosed(flags: number): boolean {
  return (flags & Flag.reset) !== 0 || (flags & (Flag.fin * 3)) === Flag.fin * 3;
}

/** True while a TCP connection has one side only, or a handshake that its client has not confirmed. */
export function isHalfOpen(flags: number): boolean {
  if ((flags & Flag.answered) === 0) return true;
  return (flags & Flag.handshakeSeen) !== 0 && (flags & Flag.confirmed) === 0;
}

/** True for one request and its answer, as long as nothing more came. */
export function isExchange(flags: number): boolean {
  return (flags & Flag.exchange) !== 0;
}

/** What a packet means for its flow, as bits. */
export const Meaning = {
  /** It closed the connection, or answered the only request: nothing more is to come. */
  end: 1,
  /** Its sender takes part in the service. */
  sending: 2,
} as const;

/**
 * Notes who has sent, and how far a TCP connection is in its life; answers what the packet means.
 *
 * A reset, an opening, its bare answer and an ICMP error are no sending: any closed or scanned port sends those. Neither is
 * what follows a handshake on which nothing is said (NET-2.4.4).
 */
export function noteState(words: Int32Array, base: number, side: number, p: Packet): number {
  const before = words[base + Field.flags]!;
  let flags = (before | (Flag.sent << side)) & ~Flag.exchange;
  if ((flags & (Flag.sent * 3)) === Flag.sent * 3) flags = (flags | Flag.answered) & ~Flag.unanswered;
  let isSending = p.dataEnd > p.dataAt;
  if (p.protocol === Protocol.tcp) {
    const bits = p.tcpFlags;
    if (bits > 0) {
      if ((bits & 0x05) !== 0) {
        if ((bits & 0x01) !== 0) flags |= Flag.fin << side;
        if ((bits & 0x04) !== 0) flags |= Flag.reset;
      }
      if (isSending) flags = (flags | Flag.confirmed | Flag.data) & ~Flag.unanswered;
      else if ((bits & 0x12) === 0x10 && isClientSide(flags, side)) flags |= Flag.confirmed;
    }
    if (!isSending || (bits & 0x04) !== 0) isSending = isSendingBare(p, flags);
  } else {
    if ((flags & ~before & Flag.answered) !== 0 && isOneEach(words, base, flags)) flags |= Flag.exchange;
    if (p.protocol !== Protocol.udp) isSending = !isIcmpError(p);
    else if (p.isFragment) isSending = true;
  }
  const meaning = isSending ? Meaning.sending : 0;
  if (flags === before) return meaning;
  words[base + Field.flags] = flags;
  if ((flags & (Flag.exchange | Flag.reset | (Flag.fin * 3))) === 0) return meaning;
  return (isExchange(flags) || isClosed(flags)) && !isClosed(before) ? meaning | Meaning.end : meaning;
}

/** The same for a segment without data, and for a reset. */
function isSendingBare(p: Packet, flags: number): boolean {
  if (p.tcpFlags < 0) return p.isFragment;
  if ((p.tcpFlags & 0x06) !== 0 || (flags & (Flag.answered | Flag.reset)) !== Flag.answered) return false;
  return (flags & Flag.data) !== 0 || (flags & Flag.handshakeSeen) === 0;
}

/** What a tunnel carries has no packets of its own to go by. */
function isOneEach(words: Int32Array, base: number, flags: number): boolean {
  if ((flags & Flag.inner) !== 0) return false;
  return words[base + Field.packets]! <= 1 && words[base + Field.packets + 1]! <= 1;
}

/** Unreachable, time exceeded and their like, which answer a packet of another protocol. */
function isIcmpError(p: Packet): boolean {
  if ((p.protocol !== Protocol.icmp && p.protocol !== Protocol.icmp6) || p.fragmentOffset > 0) return false;
  if (p.transportAt >= p.payloadEnd) return false;
  const type = p.bytes[p.transportAt]!;
  if (p.protocol === Protocol.icmp6) return type < 128;
  return type === 3 || type === 4 || type === 5 || type === 11 || type === 12;
}

function isClientSide(flags: number, side: number): boolean {
  return ((flags & Flag.clientIsHigher) !== 0) === (side === 1);
}

/** Notes from which MAC and VLAN a side sends; a second one is a conflict until the next booking. */
export function noteMac(words: Int32Array, base: number, side: number, p: Packet): void {
  const at = base + Field.mac + side * 2;
  const high = p.view.getUint16(p.macAt) | (p.vlan << 16);
  const low = p.view.getInt32(p.macAt + 2);
  if (words[at] === high && words[at + 1] === low) return;
  if (words[at] === 0 && words[at + 1] === 0) {
    words[at] = high;
    words[at + 1] = low;
  } else words[base + Field.flags]! |= Flag.macConflict << side;
}

/** The same two sockets begin another connection: all but the sockets, their place and their owners is forgotten. */
export function beginAgain(words: Int32Array, sums: Float64Array, base: number): void {
  words[base + Field.flags]! &= Flag.alive | Flag.lowerIsLocal | Flag.higherIsLocal | Flag.inner;
  // Name, streams and the first sequence number lie side by side, and so do packets and times.
  words.fill(0, base + Field.name, base + Field.mac);
  words.fill(0, base + Field.packets, base + Field.lastSeen);
  const sum = (base + Field.bytes) >> 1;
  sums[sum] = sums[sum + 1] = 0;
}
