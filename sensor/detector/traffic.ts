/**
 * The counters of some seconds of one target and direction, and the part of them that may be an attack.
 *
 * What established pairs carry is not part of an attack (`sensor/attack-counters/pair-table.ts`), nor are segments of open connections.
 * Nor are answers to packets of the opposite direction: a server that answers a SYN flood does not attack its senders.
 */
import {
  Bin,
  binLength,
  Kind,
  kindCount,
  reflectsFrom,
  type TrafficDetail,
} from '#sensor/attack-counters/index.ts';
import { spreadSources } from './thresholds.ts';

/** Counters in the layout of one bin; a sum of several bins has the same layout. */
export type Counts = Float64Array;

/** Packets and bytes that stay; a number is only given where it is needed. */
export interface Traffic {
  /** By kind. */
  packets: Float64Array;
  bytes: Float64Array;
  /** Connections that were completed and carried next to nothing. */
  idleConnections: number;
  direction: 'inbound' | 'outbound';
  /** The port of its datagrams that count as amplified, 0 where none do. */
  reflectedPort: number;
}

export interface Amount {
  packets: number;
  bytes: number;
}

/** Answers that are larger than their requests by this factor, and at least this long on average, are amplified. */
const amplifiedBy = 10;
export const amplifiedBytesMin = 200;
/** Mean bytes of connections that do something, such as a TLS handshake; where transfers of others raise it, those that carry nothing count. */
const busyConnectionBytes = 1000;
/** Less is enough where the target answers each connection with a segment and more: a short request, its response and its end. */
const shortConnection = { bytes: 400, answers: 1.5 };
/** Part of the datagrams that come from one port when a service reflects them. */
const reflectedShareMin = 0.8;

/** What errors and echo replies answer, also a protocol or a port that the target does not serve. */
const icmpAnswered: readonly number[] = [
  ...[Kind.icmp, Kind.opening, Kind.segment, Kind.datagram],
  ...[Kind.reflection, Kind.fragment, Kind.protocol],
];

/** What may have asked for answers by UDP: a client may use the same port, as servers of SIP and NTP do among themselves. */
const askedKinds: readonly number[] = [
  ...[Kind.datagram, Kind.reply, Kind.twoWayDatagram, Kind.reflection, Kind.twoWayReflection],
];

export function emptyCounts(): Counts {
  return new Float64Array(binLength);
}

/** All packets and bytes. */
export function totalOf(counts: Counts): Amount {
  const total = { packets: 0, bytes: 0 };
  for (let kind = 0; kind < kindCount; kind += 1) {
    total.packets += counts[kind]!;
    total.bytes += counts[Bin.bytes + kind]!;
  }
  return total;
}

/** All packets and bytes of a part. */
export function amountOf({ packets, bytes }: Traffic): Amount {
  return {
    packets: packets.reduce((sum, one) => sum + one, 0),
    bytes: bytes.reduce((sum, one) => sum + one, 0),
  };
}

/**
 * The part of `counts` that may be an attack. `opposite` has the counters of the same seconds in the opposite direction. `isReflector`:
 * outbound answers come from a port that reflects.
 */
export function attackPart(
  counts: Counts,
  opposite: Counts,
  direction: Traffic['direction'],
  isReflector = false,
): Traffic {
  const packets = counts.slice(Bin.packets, kindCount);
  const bytes = counts.slice(Bin.bytes, Bin.bytes + kindCount);
  const keep = (kind: number, amount: number) => {
    const before = packets[kind]!;
    const after = Math.max(0, Math.min(before, amount));
    packets[kind] = after;
    bytes[kind] = before === 0 ? 0 : (bytes[kind]! * after) / before;
  };
  const other = (kind: number) => opposite[kind]!;
  const opened = counts[Bin.opened]!;
  keep(Kind.opening, packets[Kind.opening]! - opened);
  keep(Kind.openingAnswer, packets[Kind.openingAnswer]! - other(Kind.opening));
  const answeredByReset = other(Kind.opening) + other(Kind.openingAnswer) + other(Kind.segment);
  keep(Kind.reset, packets[Kind.reset]! - answeredByReset);
  const answeredByIcmp = icmpAnswered.reduce((sum, kind) => sum + other(kind), 0);
  keep(Kind.icmpAnswer, packets[Kind.icmpAnswer]! - answeredByIcmp);
  keep(Kind.twoWaySegment, 0);
  keep(Kind.twoWayDatagram, 0);
  // What a server answers is no attack on who asked; it received no more answers than it had asked questions.
  keep(Kind.reply, direction === 'outbound' ? 0 : packets[Kind.reply]! - other(Kind.datagram));
  if (!isReflector || !isAmplified(counts, opposite)) keep(Kind.twoWayReflection, 0);
  if (direction === 'outbound' && !isReflector) countAs(Kind.datagram, Kind.reflection, packets, bytes);
  const carried = [counts, opposite].reduce((sum, one) => sum + one[Bin.bytes + Kind.twoWaySegment]!, 0);
  const isShort =
    carried >= opened * shortConnection.bytes &&
    other(Kind.twoWaySegment) >= opened * shortConnection.answers;
  const isBusy = isShort || carried >= opened * busyConnectionBytes;
  return {
    ...{ direction, packets, bytes },
    idleConnections: isBusy ? Math.max(0, opened - counts[Bin.used]!) : opened,
    reflectedPort: 0,
  };
}

/** The port from which many addresses send unasked answers, 0 where there is none. `detail` of inbound traffic. */
export function reflectedPortOf(detail: TrafficDetail | null): number {
  if (detail === null || detail.remotes() <= spreadSources) return 0;
  return detail.sourcePorts(reflectedShareMin, 1)[0] ?? 0;
}

/** Counts large datagrams as amplified, also where their port is not known for it. Changes the part. */
export function asReflected(part: Traffic, port: number): void {
  const { packets, bytes } = part;
  if (packets[Kind.datagram] === 0 || bytes[Kind.datagram]! < packets[Kind.datagram]! * amplifiedBytesMin)
    return;
  part.reflectedPort = port;
  countAs(Kind.reflection, Kind.datagram, packets, bytes);
}

function countAs(kind: number, from: number, ...both: readonly Float64Array[]): void {
  for (const values of both) {
    values[kind]! += values[from]!;
    values[from] = 0;
  }
}

/** True when most of what a target sends from ports that reflect comes from one of them. */
export function isReflector(detail: TrafficDetail | null): boolean {
  const kinds = [Kind.reflection, Kind.twoWayReflection];
  return (detail?.ports(kinds, reflectedShareMin, 1, reflectsFrom) ?? []).length > 0;
}

/** True when a server sends large answers to small requests: it is used to attack others. */
function isAmplified(counts: Counts, opposite: Counts): boolean {
  const packets = counts[Kind.twoWayReflection]!;
  const bytes = counts[Bin.bytes + Kind.twoWayReflection]!;
  const asked = askedKinds.reduce((sum, kind) => sum + opposite[Bin.bytes + kind]!, 0);
  return bytes >= packets * amplifiedBytesMin && bytes >= asked * amplifiedBy;
}
