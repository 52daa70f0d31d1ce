/**
 * What single packets change in the record of their flow, besides its counters.
 */
import { Field, Flag } from './flow-table.ts';
import { type Packet, Protocol } from './packet.ts';

/** Notes who has sent, and how far a TCP connection is in its life. */
export function noteState(words: Int32Array, base: number, side: number, p: Packet): void {
  const before = words[base + Field.flags]!;
  let flags = before | (Flag.sent << side);
  if ((flags & (Flag.sent * 3)) === Flag.sent * 3) flags = (flags | Flag.answered) & ~Flag.unanswered;
  if (p.protocol === Protocol.tcp && p.tcpFlags > 0) {
    if ((p.tcpFlags & 0x01) !== 0) flags |= Flag.fin << side;
    if ((p.tcpFlags & 0x04) !== 0) flags |= Flag.reset;
    if (p.dataEnd > p.dataAt) flags = (flags | Flag.confirmed) & ~Flag.unanswered;
    else if ((p.tcpFlags & 0x12) === 0x10 && isClientSide(flags, side)) flags |= Flag.confirmed;
  }
  if (flags !== before) words[base + Field.flags] = flags;
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
