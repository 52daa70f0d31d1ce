/**
 * Layout of a flow's record, and its changes by single packets, except the counters.
 */
import { type Packet, Protocol } from '../decode/packet.ts';

/** Words of a record; a side is 0 for the lower socket, 1 for the higher. */
export const flowWords = 32;
/** Positions of values in a record, in words. Look-up and counting use the first half, which is one cache line. */
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

/**
 * In place of a tunnel, which has at most 255: flows of packets whose source is spoofed, by the side that it is on (`address-guard.ts`).
 */
export const spoofedPath = 256;
/** The same for the flow of the sensor's own scan of an address (`own-scans.ts`): it counts on its addresses and has no usage row. */
export const ownScanPath = spoofedPath + 2;

export function isSpoofed(words: Int32Array, base: number): boolean {
  const path = words[base + Field.meta]! >>> 16;
  return path >= spoofedPath && path < ownScanPath;
}

export function isOwnScan(words: Int32Array, base: number): boolean {
  return words[base + Field.meta]! >>> 16 === ownScanPath;
}

/** Of the sides in `sides` (bit 0: the lower one) those that are not spoofed. */
export function withoutSpoofed(words: Int32Array, base: number, sides: number): number {
  return isSpoofed(words, base) ? sides & ~(1 << ((words[base + Field.meta]! >>> 16) - spoofedPath)) : sides;
}

/** Position of the name's evidence in the flags. */
const evidenceShift = 20;
const evidenceMask = 7 << evidenceShift;

/** The evidence for a flow's name. */
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
  /** The client is known, not guessed. */
  clientIsSure: 4,
  /** Both sides have sent. */
  answered: 8,
  /** The second of the two `fin` bits is for the higher side. */
  fin: 16,
  reset: 64,
  unanswered: 128,
  lowerIsLocal: 256,
  higherIsLocal: 512,
  /** The second of the two is for the higher side. */
  macConflict: 1024,
  inner: 4096,
  /** The second of the two is for the higher side. */
  sent: 8192,
  /** The start of a TCP connection was seen; `initialSequence` is its client's. */
  handshakeSeen: 32768,
  /** The client of the TCP connection sent more than the opening. */
  confirmed: 65536,
  /** One request and one answer, not TCP: the exchange is finished. */
  exchange: 131072,
  /** The fast path counted it since the tap was told; only with a tap. */
  touched: 524288,
  /** Data or an acknowledgement: neither an opening, nor a reset, nor a fragment. The second is for the higher side. */
  said: 16777216,
  /** Answered the opening of a TCP connection. The second is for the higher side. */
  accepted: 67108864,
  /** Sent a TCP segment with data. The second is for the higher side. */
  data: 268435456,
} as const;

const saidShift = 24;
const acceptedShift = 26;
const dataShift = 28;

/** True after a reset, or a FIN from both ends. */
export function isClosed(flags: number): boolean {
  return (flags & Flag.reset) !== 0 || (flags & (Flag.fin * 3)) === Flag.fin * 3;
}

/** True while a TCP connection has one side only, or a handshake that its client has not confirmed. */
export function isHalfOpen(flags: number): boolean {
  if ((flags & Flag.answered) === 0) return true;
  return (flags & Flag.handshakeSeen) !== 0 && (flags & Flag.confirmed) === 0;
}

/** True for one request and its answer, until another packet comes. */
export function isExchange(flags: number): boolean {
  return (flags & Flag.exchange) !== 0;
}

/** Effects of a packet on its flow, as bits. */
export const Meaning = {
  /** It closed the connection or answered the only request. */
  end: 1,
  /** Its sender uses or provides the service. */
  sending: 2,
} as const;

/**
 * Updates who has sent and the state of a TCP connection; returns the effects of the packet.
 *
 * A reset, an opening, its bare answer and an ICMP error do not count as sending, because any closed or scanned port
 * sends them. The segments after a handshake without data do not count either (NET-2.4.4).
 */
export function noteState(words: Int32Array, base: number, side: number, p: Packet): number {
  const before = words[base + Field.flags]!;
  let flags = (before | (Flag.sent << side)) & ~Flag.exchange;
  if ((flags & (Flag.sent * 3)) === Flag.sent * 3) flags = (flags | Flag.answered) & ~Flag.unanswered;
  let isSending = p.dataEnd > p.dataAt;
  if (p.protocol === Protocol.tcp) {
    const bits = p.tcpFlags;
    if (!p.isFragment) {
      if (bits < 0 || (bits & 0x06) === 0) flags |= Flag.said << side;
      else if ((bits & 0x16) === 0x12) flags |= Flag.accepted << side;
    }
    if (bits > 0) {
      if ((bits & 0x05) !== 0) {
        if ((bits & 0x01) !== 0) flags |= Flag.fin << side;
        if ((bits & 0x04) !== 0) flags |= Flag.reset;
      }
      if (isSending) flags = (flags | Flag.confirmed | (Flag.data << side)) & ~Flag.unanswered;
      else if ((bits & 0x12) === 0x10 && isClientSide(flags, side)) flags |= Flag.confirmed;
    }
    if (!isSending || (bits & 0x04) !== 0) isSending = isSendingBare(p, flags);
  } else {
    if (!p.isFragment) flags |= Flag.said << side;
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

/** What a packet of one side says of its flow, as bits. */
export const Exchange = {
  /** The flow's opposite end has said something, or accepted the connection. */
  isTwoWay: 1,
  /** With it, the handshake of a TCP connection is complete. */
  isOpened: 2,
  /** With it, the side that opened a TCP connection has sent its first data. */
  isUsed: 4,
} as const;

/** What packets of a side say of the flow whose flags were `before` and are `after` now, as bits of `Exchange`. */
export function exchangeOf(before: number, after: number, side: number, protocol: number): number {
  const other = 1 - side;
  const isAccepted = protocol === Protocol.tcp ? (after >>> (acceptedShift + other)) & 1 : 0;
  const fresh = after & ~before;
  const isFirst = (fresh >>> (saidShift + side)) & 1;
  const isFirstData = (fresh >>> (dataShift + side)) & 1;
  const isTwoWay = ((after >>> (saidShift + other)) & 1) | isAccepted;
  return isTwoWay | ((isAccepted & isFirst) << 1) | ((isAccepted & isFirstData) << 2);
}

/** The same for a segment without data, and for a reset. */
function isSendingBare(p: Packet, flags: number): boolean {
  if (p.tcpFlags < 0) return p.isFragment;
  if ((p.tcpFlags & 0x06) !== 0 || (flags & (Flag.answered | Flag.reset)) !== Flag.answered) return false;
  return (flags & (Flag.data * 3)) !== 0 || (flags & Flag.handshakeSeen) === 0;
}

/** Inner flows of a tunnel have no packet counts of their own, so flags decide. */
function isOneEach(words: Int32Array, base: number, flags: number): boolean {
  if ((flags & Flag.inner) !== 0) return false;
  return words[base + Field.packets]! <= 1 && words[base + Field.packets + 1]! <= 1;
}

/** Unreachable, time exceeded and similar: answers to a packet of another protocol. */
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

/** Records the MAC and VLAN from which a side sends. A second MAC is a conflict until the flow is accounted again. */
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

/** A new connection between the same two sockets: clears everything except the sockets, the position and the owners. */
export function beginAgain(words: Int32Array, sums: Float64Array, base: number): void {
  words[base + Field.flags]! &= Flag.alive | Flag.lowerIsLocal | Flag.higherIsLocal | Flag.inner;
  // Name, streams and the first sequence number are adjacent, and so are packets and times.
  words.fill(0, base + Field.name, base + Field.mac);
  words.fill(0, base + Field.packets, base + Field.lastSeen);
  const sum = (base + Field.bytes) >> 1;
  sums[sum] = sums[sum + 1] = 0;
}
