/** Names the class of an attack and its largest vectors, from the traffic of the seconds that triggered it. */
import type { AttackClass, Severity } from '#contracts/sensor-api/detection.ts';
import { Kind, type TrafficDetail } from '#sensor/attack-counters/index.ts';
import type { Ratios } from './ratios.ts';
import type { Metric } from './thresholds.ts';
import { type Amount, amountOf, amplifiedBytesMin, type Traffic } from './traffic.ts';

export type { AttackClass, Severity };

export interface Vector {
  class: AttackClass;
  /** Shares of the attack, 0 to 1. */
  packets_share: number;
  bytes_share: number;
  ports: number[];
}

export interface Verdict {
  class: AttackClass;
  severity: Severity;
  vectors: Vector[];
}

const vectorsMax = 3;
const portsMax = 8;
/** Smaller parts are background. */
const vectorShareMin = 0.05;
/** Smaller ports are background too. */
const portShareMin = 0.05;
const shareMin = 0.5;
/** Fragments break up the packets of other classes, so they are named from a smaller share on. */
const fragmentShareMin = 0.3;
/** A scan comes from few addresses and asks many ports. */
const scannersMax = 4;
const scanPortShareMax = 0.1;

/** Classes in the order in which they are considered, with the kinds of their packets. */
const order: readonly [AttackClass, readonly number[]][] = [
  ['fragment_flood', [Kind.fragment]],
  ['amplification', [Kind.reflection, Kind.twoWayReflection]],
  ['syn_flood', [Kind.opening]],
  ['synack_reflection', [Kind.openingAnswer]],
  ['ack_flood', [Kind.segment]],
  ['rst_flood', [Kind.reset]],
  ['udp_flood', [Kind.datagram, Kind.reply]],
  ['icmp_flood', [Kind.icmp, Kind.icmpAnswer]],
  ['gre_flood', [Kind.tunnel]],
  ['other', [Kind.other]],
];

const classesOf: Partial<Record<Metric, readonly AttackClass[]>> = {
  syn_pps: ['syn_flood'],
  udp_pps: ['udp_flood', 'amplification'],
  udp_bps: ['udp_flood', 'amplification'],
  icmp_pps: ['icmp_flood'],
  fragment_pps: ['fragment_flood'],
  amplification_bps: ['amplification'],
  amplification_spread_bps: ['amplification'],
};

const connectionKinds = [Kind.opening, Kind.twoWaySegment];

interface Part extends Amount {
  class: AttackClass;
  kinds: readonly number[];
}

/** The class of traffic whose ratios are these. */
export function classify(
  traffic: Traffic,
  ratios: Ratios,
  direction: 'inbound' | 'outbound',
  detail: TrafficDetail | null,
): Verdict {
  const total = amountOf(traffic);
  const parts = partsOf(traffic);
  const share = (part: Part) => largestShare(part, total);
  const vectors = parts
    .filter((part) => share(part) >= vectorShareMin)
    .sort((a, b) => share(b) - share(a))
    .slice(0, vectorsMax)
    .map((part) => vectorOf(part, total, detail));
  const isOverall = ratios.pps >= 1 || ratios.bps >= 1;
  const found = chooseClass(parts, share, ratios);
  if (found === 'syn_flood' && direction === 'inbound' && !isOverall && isScan(detail))
    return { class: 'other', severity: 'info', vectors };
  if (found === 'connection_flood' && !vectors.some((vector) => vector.class === found))
    vectors.unshift({
      class: found,
      packets_share: 1,
      bytes_share: 1,
      ports: detail?.ports(connectionKinds, portShareMin, portsMax) ?? [],
    });
  return { class: found, severity: 'attack', vectors: vectors.slice(0, vectorsMax) };
}

/** The verdict on much ordinary traffic. */
export function highVolume(detail: TrafficDetail | null): Verdict {
  const ports = detail?.ports(Object.values(Kind), portShareMin, portsMax) ?? [];
  const vector: Vector = { class: 'high_volume', packets_share: 1, bytes_share: 1, ports };
  return { class: 'high_volume', severity: 'info', vectors: [vector] };
}

/** The traffic by class. Small packets from the ports of amplification are an ordinary UDP flood. */
function partsOf({ packets, bytes }: Traffic): Part[] {
  const sum = (values: Float64Array, kinds: readonly number[]) =>
    kinds.reduce((all, kind) => all + values[kind]!, 0);
  const parts = order.map(([name, kinds]) => ({
    class: name,
    kinds,
    packets: sum(packets, kinds),
    bytes: sum(bytes, kinds),
  }));
  const reflected = parts.find((part) => part.class === 'amplification')!;
  const datagrams = parts.find((part) => part.class === 'udp_flood')!;
  if (reflected.bytes < reflected.packets * amplifiedBytesMin) {
    datagrams.packets += reflected.packets;
    datagrams.bytes += reflected.bytes;
    datagrams.kinds = [...datagrams.kinds, ...reflected.kinds];
    reflected.packets = reflected.bytes = 0;
  }
  return parts;
}

function largestShare(part: Amount, total: Amount): number {
  return Math.max(part.packets / Math.max(1, total.packets), part.bytes / Math.max(1, total.bytes));
}

/** Among classes with a threshold that is exceeded, else among all, the first with a large share; else the largest. */
function chooseClass(parts: readonly Part[], share: (part: Part) => number, ratios: Ratios): AttackClass {
  const exceeded = new Set(
    Object.entries(classesOf).flatMap(([metric, classes]) => (ratios[metric as Metric] >= 1 ? classes : [])),
  );
  if (exceeded.size === 0 && ratios.connections_per_second >= 1) return 'connection_flood';
  const candidates = parts.filter((part) => exceeded.size === 0 || exceeded.has(part.class));
  const first = candidates.find(
    (part) => share(part) >= (part.class === 'fragment_flood' ? fragmentShareMin : shareMin),
  );
  if (first) return first.class;
  if (exceeded.size === 0) return 'other';
  return candidates.reduce((a, b) => (share(b) > share(a) ? b : a)).class;
}

function vectorOf(part: Part, total: Amount, detail: TrafficDetail | null): Vector {
  return {
    class: part.class,
    packets_share: rounded(part.packets / Math.max(1, total.packets)),
    bytes_share: rounded(part.bytes / Math.max(1, total.bytes)),
    ports: detail?.ports(part.kinds, portShareMin, portsMax) ?? [],
  };
}

/** True when few addresses ask many ports. */
function isScan(detail: TrafficDetail | null): boolean {
  if (detail === null || detail.remotes() > scannersMax) return false;
  return detail.ports([Kind.opening], scanPortShareMax, 1).length === 0;
}

/** Four decimals. */
export function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}
