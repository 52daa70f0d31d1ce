/** From which rates on a target is worth a closer look; far below every threshold. */
import type { Metric } from '#contracts/sensor-api/detection.ts';
import { Bin, type DetailLimits, Kind, kindCount, type SlotTable } from '#sensor/attack-counters/index.ts';
import {
  type DirectionName,
  type DirectionThresholds,
  directionNames,
  type Thresholds,
} from './thresholds.ts';
import { type Counts, totalOf } from './traffic.ts';

/** Answers have no more: so many packets are looked at before their bytes reach a threshold. */
const packetBytes = 1500;
/** Part of a threshold from which a target is looked at. */
const lookedAtRatio = 0.2;

const metricOf: Partial<Record<number, Metric>> = {
  [Kind.opening]: 'syn_pps',
  [Kind.datagram]: 'udp_pps',
  [Kind.reply]: 'udp_pps',
  [Kind.reflection]: 'udp_pps',
  [Kind.icmp]: 'icmp_pps',
  [Kind.icmpAnswer]: 'icmp_pps',
  [Kind.fragment]: 'fragment_pps',
};

/** Rates of one second, by direction and kind. */
export function lookedAtFrom(thresholds: Thresholds): DetailLimits {
  const packets = directionNames.map((direction) =>
    Array.from({ length: kindCount }, (_, kind) => packetLimit(thresholds[direction], kind)),
  );
  const bytes = directionNames.map((direction) => byteLimit(thresholds[direction], direction));
  return { packets, bytes };
}

function packetLimit(thresholds: DirectionThresholds, kind: number): number {
  const metric = metricOf[kind];
  const isReflection = kind === Kind.reflection || kind === Kind.twoWayReflection;
  const ofBytes = isReflection ? amplificationOf(thresholds) / 8 / packetBytes : Number.POSITIVE_INFINITY;
  return Math.min(thresholds.pps, ofBytes, metric ? thresholds[metric] : thresholds.pps) * lookedAtRatio;
}

const amplificationOf = (one: DirectionThresholds) =>
  Math.min(one.amplification_bps, one.amplification_spread_bps);

/** Outbound, a server that reflects is found by its packets: other servers send as much in downloads. */
function byteLimit(one: DirectionThresholds, direction: DirectionName): number {
  const amplification = direction === 'inbound' ? amplificationOf(one) : Number.POSITIVE_INFINITY;
  const least = Math.min(one.bps, one.udp_bps, amplification);
  return (least / 8) * lookedAtRatio;
}

/** Packets of all kinds together, and opened connections, from which a second is worth a closer look. */
export function wholeRatesFrom(thresholds: DirectionThresholds): { packets: number; opened: number } {
  return {
    packets: thresholds.pps * lookedAtRatio,
    opened: thresholds.connections_per_second * lookedAtRatio,
  };
}

/** Rates of one direction from which packets are looked at that are not known to be part of a conversation or not. */
export interface LimitedRates {
  /** By kind, and of all kinds together. */
  packets: readonly number[];
  allPackets: number;
  opened: number;
  /** With fewer packets and bytes no limit is reached. */
  leastPackets: number;
  leastBytes: number;
  bytes: number;
  /** Only UDP is amplified. */
  udpBytes: number;
}

/** The same by direction. */
export function limitedRates(thresholds: Thresholds, limits: DetailLimits): LimitedRates[] {
  return directionNames.map((direction, i) => {
    const one = thresholds[direction];
    const { packets: allPackets, opened } = wholeRatesFrom(one);
    const packets = limits.packets[i]!;
    const [bytes, udpBytes] = [(one.bps / 8) * lookedAtRatio, byteLimit(one, direction)];
    return {
      ...{ packets, allPackets, opened, bytes, udpBytes },
      leastPackets: Math.min(...packets, allPackets, opened),
      leastBytes: Math.min(bytes, udpBytes),
    };
  });
}

/** True when the counters of a second are worth a closer look. */
export function isHot(
  counts: Counts,
  limits: DetailLimits,
  direction: number,
  thresholds: DirectionThresholds,
): boolean {
  const { packets, bytes } = totalOf(counts);
  const whole = wholeRatesFrom(thresholds);
  if (packets >= whole.packets || bytes >= limits.bytes[direction]!) return true;
  if (counts[Bin.opened]! >= whole.opened) return true;
  const byKind = limits.packets[direction]!;
  for (let kind = 0; kind < kindCount; kind += 1) if (counts[kind]! >= byKind[kind]!) return true;
  return false;
}

/** The same of a slot's second, without a copy of its counters. */
export function isSlotHot(
  table: SlotTable,
  slot: number,
  direction: number,
  second: number,
  limits: DetailLimits,
  thresholds: DirectionThresholds,
): boolean {
  const { packets, opened } = wholeRatesFrom(thresholds);
  const bytes = limits.bytes[direction]!;
  return table.reaches(slot, direction, second, packets, bytes, opened, limits.packets[direction]!);
}
