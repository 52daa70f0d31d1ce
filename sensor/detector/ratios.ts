/** How far traffic exceeds the thresholds: rate divided by threshold, for each metric. */
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import { Bin, Kind } from '#sensor/attack-counters/index.ts';
import { type DirectionThresholds, spreadSources } from './thresholds.ts';
import { type Amount, amountOf, type Counts, type Traffic, totalOf } from './traffic.ts';

/** Ratios by metric; 1 is the threshold. */
export type Ratios = Readonly<Record<Metric, number>>;

/** The rates of a part that may be an attack, as sums. */
export function attackRates(part: Traffic, remotes: number | null): Record<Metric, number> {
  const { packets, bytes } = part;
  const total = amountOf(part);
  const udpKinds = [Kind.datagram, Kind.reply, Kind.reflection, Kind.twoWayReflection];
  const sumOf = (values: Float64Array) => udpKinds.reduce((sum, kind) => sum + values[kind]!, 0);
  const amplified = (bytes[Kind.reflection]! + bytes[Kind.twoWayReflection]!) * 8;
  return {
    pps: total.packets,
    bps: total.bytes * 8,
    syn_pps: packets[Kind.opening]!,
    udp_pps: sumOf(packets),
    udp_bps: sumOf(bytes) * 8,
    icmp_pps: packets[Kind.icmp]! + packets[Kind.icmpAnswer]!,
    fragment_pps: packets[Kind.fragment]!,
    amplification_bps: amplified,
    amplification_spread_bps: remotes !== null && remotes > spreadSources ? amplified : 0,
    connections_per_second: part.idleConnections,
  };
}

/** The ratios of a part that may be an attack, over `seconds`. */
export function attackRatios(
  part: Traffic,
  thresholds: DirectionThresholds,
  seconds: number,
  remotes: number | null,
): Ratios {
  const rates = attackRates(part, remotes);
  for (const metric of metrics) rates[metric] /= thresholds[metric] * seconds;
  return rates;
}

/** The larger ratio of packets and bytes of one second. */
export function volumeRatio({ packets, bytes }: Amount, { pps, bps }: DirectionThresholds): number {
  return Math.max(packets / pps, (bytes * 8) / bps);
}

/**
 * The largest ratio that traffic may have had, if frames of an unknown number of packets had as many as fit. It decides
 * what is healthy; what is an attack is decided by the packets that there were at least.
 */
export function largestPossible(ratio: number, counts: Counts, thresholds: DirectionThresholds): number {
  const unknown = counts[Bin.unknown]!;
  if (unknown === 0) return ratio;
  const { packets, bytes } = totalOf(counts);
  return Math.max(ratio, volumeRatio({ packets: packets + unknown, bytes }, thresholds));
}

/** The largest of all ratios. */
export function largest(ratios: Ratios): number {
  let most = 0;
  for (const metric of metrics) if (ratios[metric] > most) most = ratios[metric];
  return most;
}
