/** Names the class of an attack and its largest vectors, from the traffic of the seconds that triggered it. */
import { type AttackClass, attackClasses, attackClassRows } from '#contracts/attack-classes.ts';
import type { AttackDirection, IncidentSeverity, TargetKind } from '#contracts/incidents.ts';
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import { Kind, type TrafficDetail } from '#sensor/attack-counters/index.ts';
import type { Ratios } from './ratios.ts';
import { type Amount, amplifiedBytesMin, type Traffic } from './traffic.ts';

export interface Vector {
  class: AttackClass;
  /** Shares of the attack, 0 to 1. */
  packets_share: number;
  bytes_share: number;
  /** Ports of the target; of amplification those of the source. */
  ports: number[];
  /** Ports from which a UDP flood comes; of all others none. */
  source_ports: number[];
  /** IP protocols of a `protocol_flood`; of all others none. */
  protocols: number[];
}

export interface Verdict {
  class: AttackClass;
  severity: IncidentSeverity;
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
/** A scan comes from few addresses and asks many ports; so much of the openings is theirs. */
const scannersMax = 4;
const scannersShareMin = 0.9;
const scanPortShareMax = 0.1;
const scanPacketsMin = 96;
/** An amplified answer has at most so many fragments; the first one tells its port. */
const answerFragmentsMax = 8;

/** The kinds of packets that each class consists of, in the order in which the classes are considered. */
const kindsOf: Partial<Record<AttackClass, readonly number[]>> = {
  fragment_flood: [Kind.fragment],
  amplification: [Kind.reflection, Kind.twoWayReflection],
  reflector: [Kind.reflection, Kind.twoWayReflection],
  syn_flood: [Kind.opening],
  synack_reflection: [Kind.openingAnswer],
  ack_flood: [Kind.segment],
  rst_flood: [Kind.reset],
  udp_flood: [Kind.datagram, Kind.reply],
  icmp_flood: [Kind.icmp, Kind.icmpAnswer],
  protocol_flood: [Kind.protocol],
};
const order = attackClasses.flatMap((name) => (kindsOf[name] ? [[name, kindsOf[name]] as const] : []));

/** The classes of whose packets a metric that is exceeded says something. */
function classesOf(metric: Metric): AttackClass[] {
  if (metric === 'amplification_spread_bps') return classesOf('amplification_bps');
  const counted = attackClasses.filter((name) => attackClassRows[name].metrics.some((one) => one === metric));
  // Fragments are also those of large answers.
  return metric === 'fragment_pps' ? [...counted, 'amplification'] : counted;
}

/** The kind of the packets of a drill. */
export function kindOfDrill(name: AttackClass): number {
  return kindsOf[name]?.[0] ?? (name === 'high_volume' ? Kind.twoWaySegment : Kind.opening);
}

/** Kinds by which packets of a class count at first where their ends have conversed. */
const conversedKinds: Partial<Record<AttackClass, readonly number[]>> = {
  ack_flood: [Kind.twoWaySegment],
  udp_flood: [Kind.twoWayDatagram],
};

const connectionKinds = [Kind.opening, Kind.twoWaySegment];

interface Part extends Amount {
  class: AttackClass;
  kinds: readonly number[];
}

/** What else a verdict depends on. */
interface Circumstances {
  target: { kind: TargetKind };
  direction: AttackDirection;
  detail: TrafficDetail | null;
}

/** The class of traffic whose ratios are these. */
export function classify(
  traffic: Traffic,
  ratios: Ratios,
  { target, direction, detail }: Circumstances,
): Verdict {
  const parts = partsOf(traffic);
  const total = totalOf(parts);
  const share = (part: Part) => largestShare(part, total);
  const vectors = parts
    .filter((part) => share(part) >= vectorShareMin)
    .sort((a, b) => share(b) - share(a))
    .slice(0, vectorsMax)
    .map((part) => vectorOf(part, total, detail, traffic.reflectedPort));
  const found = chooseClass(parts, share, ratios);
  if (found === 'syn_flood' && direction === 'inbound' && isScan(detail, target.kind)) {
    const { packets, bytes } = parts.find((part) => part.class === found)!;
    const isOverall = ratios.pps * packets >= total.packets || ratios.bps * bytes >= total.bytes;
    if (!isOverall) return { class: 'other', severity: 'info', vectors };
  }
  return { class: found, severity: 'attack', vectors };
}

/** The classes of which traffic has at least a twentieth, with their parts of it. */
export function amountsByClass(traffic: Traffic): (Amount & { class: AttackClass })[] {
  const parts = partsOf(traffic);
  const total = totalOf(parts);
  return parts.filter((part) => largestShare(part, total) >= vectorShareMin);
}

function totalOf(parts: readonly Amount[]): Amount {
  const total = { packets: 0, bytes: 0 };
  for (const part of parts) {
    total.packets += part.packets;
    total.bytes += part.bytes;
  }
  return total;
}

/** The verdict on much ordinary traffic. */
export function highVolume(detail: TrafficDetail | null): Verdict {
  const kinds = Object.values(Kind).filter((kind) => kind !== Kind.protocol);
  const ports = detail?.ports(kinds, portShareMin, portsMax) ?? [];
  const vector: Vector = {
    ...{ class: 'high_volume', packets_share: 1, bytes_share: 1, ports },
    ...{ source_ports: [], protocols: [] },
  };
  return { class: 'high_volume', severity: 'info', vectors: [vector] };
}

/**
 * The traffic by class. Small packets from the ports of amplification are an ordinary UDP flood; fragments among large ones are theirs.
 * Completed connections that carry next to nothing count as a packet each.
 */
function partsOf({ direction, packets, bytes, idleConnections }: Traffic): Part[] {
  const [own, opposite] =
    direction === 'inbound'
      ? (['amplification', 'reflector'] as const)
      : (['reflector', 'amplification'] as const);
  const sum = (values: Float64Array, kinds: readonly number[]) =>
    kinds.reduce((all, kind) => all + values[kind]!, 0);
  const parts: Part[] = order
    .filter(([name]) => name !== opposite)
    .map(([name, kinds]) => ({
      class: name,
      // Ports of ordinary traffic of the same kind are none of the attack.
      kinds: kinds.filter((kind) => packets[kind]! > 0),
      packets: sum(packets, kinds),
      bytes: sum(bytes, kinds),
    }));
  const partOf = (name: AttackClass) => parts.find((part) => part.class === name)!;
  const reflected = partOf(own);
  const fragments = partOf('fragment_flood');
  if (reflected.bytes < reflected.packets * amplifiedBytesMin) moveInto(partOf('udp_flood'), reflected);
  else if (fragments.packets <= reflected.packets * answerFragmentsMax) moveInto(reflected, fragments);
  parts.push({ class: 'connection_flood', kinds: connectionKinds, packets: idleConnections, bytes: 0 });
  return parts;
}

function moveInto(part: Part, other: Part): void {
  part.packets += other.packets;
  part.bytes += other.bytes;
  part.kinds = [...part.kinds, ...other.kinds];
  other.packets = other.bytes = 0;
}

function largestShare(part: Amount, total: Amount): number {
  return Math.max(part.packets / Math.max(1, total.packets), part.bytes / Math.max(1, total.bytes));
}

/** Among classes with a threshold that is exceeded, else among all, the first with a large share; else the largest. */
function chooseClass(parts: readonly Part[], share: (part: Part) => number, ratios: Ratios): AttackClass {
  const exceeded = new Set(metrics.flatMap((metric) => (ratios[metric] >= 1 ? classesOf(metric) : [])));
  if (exceeded.size === 0 && ratios.connections_per_second >= 1) return 'connection_flood';
  const candidates = parts.filter((part) =>
    exceeded.size === 0 ? part.class !== 'connection_flood' : exceeded.has(part.class),
  );
  const first = candidates.find(
    (part) => share(part) >= (part.class === 'fragment_flood' ? fragmentShareMin : shareMin),
  );
  if (first) return first.class;
  if (exceeded.size === 0) return 'other';
  return candidates.reduce((a, b) => (share(b) > share(a) ? b : a)).class;
}

function vectorOf(part: Part, total: Amount, detail: TrafficDetail | null, reflectedPort: number): Vector {
  const isProtocol = part.class === 'protocol_flood';
  const portsOf = (kinds: readonly number[]) =>
    isProtocol ? [] : (detail?.ports(kinds, portShareMin, portsMax) ?? []);
  let ports = portsOf(part.kinds);
  // Who has conversed and floods then is known as such when its second ends.
  if (ports.length === 0 && part.kinds.length > 0) ports = portsOf(conversedKinds[part.class] ?? []);
  if (part.class === 'amplification' && reflectedPort > 0) ports.unshift(reflectedPort);
  const isUdp = part.class === 'udp_flood';
  return {
    class: part.class,
    packets_share: rounded(part.packets / Math.max(1, total.packets)),
    bytes_share: rounded(part.bytes / Math.max(1, total.bytes)),
    ports: ports.slice(0, portsMax),
    source_ports: (isUdp && detail?.sourcePorts(portShareMin, portsMax)) || [],
    protocols: (isProtocol && detail?.protocols(portShareMin, portsMax)) || [],
  };
}

/** True when few addresses ask many ports, or many addresses of a prefix. */
function isScan(detail: TrafficDetail | null, target: Circumstances['target']['kind']): boolean {
  if (detail === null) return false;
  // Of a prefix one packet of 32 is known: each source is to be seen three times.
  if (target === 'prefix') {
    const remotes = detail.remotes();
    return remotes > 0 && remotes <= scannersMax && detail.packets >= remotes * scanPacketsMin;
  }
  if (detail.openersShare(scannersMax) < scannersShareMin) return false;
  return detail.ports([Kind.opening], scanPortShareMax, 1).length === 0;
}

/** Four decimals. */
export function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}

/** For the documentation. */
export { order as kindsByClass };
