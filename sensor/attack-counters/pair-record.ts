/** Layout of a pair's record, and what kinds of packets are to a pair. */
import { Protocol } from '#sensor/capture/index.ts';
import { Kind, kindCount } from './packet-kind.ts';

/** Where the packets of an end count. */
export const Place = {
  /** Not protected. */
  none: 0,
  /** Hosts: their slot follows. */
  host: 1,
  /** Hosts without counters: the slot of their prefix follows. */
  prefix: 8192,
  /** Protected, and counted nowhere. */
  uncounted: 0xffff,
} as const;

/** Packets and bytes of one end that turn out to be of another kind. */
export interface Move {
  place: number;
  direction: number;
  second: number;
  from: number;
  to: number;
  packets: number;
  bytes: number;
}

/** What packets of a kind are to a pair. */
export const Role = { none: 0, plain: 1, fragment: 2, apart: 3 } as const;
export const roleOf = new Uint8Array(kindCount);
for (const kind of [Kind.segment, Kind.datagram, Kind.reply, Kind.icmp, Kind.protocol])
  roleOf[kind] = Role.plain;
roleOf[Kind.fragment] = Role.fragment;
// They are part of the conversation, and their kind says already whether they are ordinary.
for (const kind of [Kind.twoWaySegment, Kind.twoWayReflection, Kind.icmpAnswer]) roleOf[kind] = Role.apart;
/** Whether the pair of a packet of a kind is asked for: never, always, or only while the protected end has much traffic. */
export const Asked = { never: 0, always: 1, whenBusy: 2 } as const;
export const askedOf = roleOf.map((role, kind) =>
  role === Role.none ? Asked.never : kind === Kind.twoWaySegment ? Asked.whenBusy : Asked.always,
);
/** Kinds of flows whose other end has sent. */
export const twoWayKinds = (1 << Kind.twoWaySegment) | (1 << Kind.reply) | (1 << Kind.twoWayReflection);

/** Words of a record. A side is 0 for the lower address, 1 for the higher one. Seconds are from one on; zero is none. */
export const Word = {
  /** The protocol, then by `State`. */
  state: 0,
  /** The places of both sides, the lower one's above. */
  places: 1,
  /** Its first second, and that of its open counters. */
  born: 2,
  open: 3,
  /** The second of the first answer. */
  answered: 4,
  /** The last second in which each side sent payload. */
  said: 5,
  /** By side, by `Sum`. */
  sums: 7,
  /** Until it is established what each side sent in the second before, by `Before`; then the means, as floats. */
  before: 19,
} as const;
export const recordWords = 28;
export const State = { isIpv6: 1 << 8, isEstablished: 1 << 9, firstIsHigher: 1 << 10 } as const;
/** All packets and bytes of a second, and those of fragments and of kinds that are apart. */
export const Sum = {
  packets: 0,
  bytes: 1,
  fragments: 2,
  fragmentBytes: 3,
  apart: 4,
  apartBytes: 5,
  side: 6,
} as const;
export const Before = { packets: 0, bytes: 1, fragments: 2, fragmentBytes: 3, side: 4 } as const;
export const sumMax = 2 ** 31 - 1;

/** Where the packets of a protected end count. */
export function placeOf(slot: number, prefix: number): number {
  if (slot >= 0) return Place.host + slot;
  return prefix >= 0 ? Place.prefix + prefix : Place.uncounted;
}

/** The two-way kind of what an established pair carries. */
export function establishedKindOf(kind: number): number {
  return kind === Kind.segment ? Kind.twoWaySegment : Kind.twoWayDatagram;
}

/** True when a side sent payload in the open second; of TCP, which acknowledges, any segment. */
export function hasSaid(records: Int32Array, base: number, side: number): boolean {
  const sum = base + Word.sums + side * Sum.side;
  const isIpv6 = (records[base]! & State.isIpv6) !== 0;
  const protocol = records[base]! & 0xff;
  const headers = protocol === Protocol.udp ? (isIpv6 ? 48 : 28) : 0;
  return records[sum + Sum.bytes]! > records[sum]! * headers;
}

/** Packets (0) or bytes (1) of a side's sums that are neither fragments nor apart. */
export function plainOf(records: Int32Array, sum: number, unit: number): number {
  const rest = records[sum + Sum.fragments + unit]! + records[sum + Sum.apart + unit]!;
  return Math.max(0, records[sum + unit]! - rest);
}

/** True when the first of two IPv6 addresses is the lower one; its last word counts first. */
export function isSourceLower(wide: Int32Array, at: number): boolean {
  for (let word = 3; word >= 0; word -= 1)
    if (wide[at + word] !== wide[at + 4 + word]) return wide[at + word]! < wide[at + 4 + word]!;
  return true;
}
