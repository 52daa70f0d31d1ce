/** Attacks on customers' servers of the simulated site: one on every third UTC day. */
import { createHash } from 'node:crypto';
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { IncidentObservation, Metric } from '#contracts/sensor-api/detection.ts';
import { captureName, type Hypervisor, serversEach } from './plan.ts';
import { between, createDraw } from './random.ts';

export interface PlannedAttack {
  /** Index of the hypervisor: that of the customers' servers. */
  hypervisor: number;
  /** Place of the server on its hypervisor. */
  server: number;
  class: AttackClass;
  /** Seconds since 1970, whole minutes; the end is not of the attack. */
  fromMinute: number;
  endMinute: number;
  pps: number;
  packetBytes: number;
}

interface Kind {
  class: AttackClass;
  metric: Metric;
  threshold: number;
  packetBytes: number;
  ports: number[];
}

const kinds: readonly Kind[] = [
  { class: 'udp_flood', metric: 'udp_pps', threshold: 30_000, packetBytes: 420, ports: [27_015] },
  { class: 'syn_flood', metric: 'syn_pps', threshold: 10_000, packetBytes: 44, ports: [443] },
  { class: 'amplification', metric: 'amplification_bps', threshold: 150e6, packetBytes: 1_240, ports: [123] },
];

const daySeconds = 86_400;
const everyDays = 3;
/** The range that an attack's packets seem to come from. */
export const attackSources: readonly string[] = Array.from({ length: 6 }, (_, i) => `198.19.${200 + i}.66`);

/** The attack on the day that holds this minute, or null. */
export function attackOfDay(seed: number, minute: number): PlannedAttack | null {
  const day = Math.floor(minute / daySeconds);
  if (day % everyDays !== 0) return null;
  const draw = createDraw(seed, 3, day);
  const minutes = between(draw, 4, 18);
  const fromMinute = day * daySeconds + between(draw, 60, 1_380 - minutes) * 60;
  const kind = kinds[Math.floor(day / everyDays) % kinds.length]!;
  return {
    hypervisor: 0,
    server: between(draw, 0, serversEach - 1),
    class: kind.class,
    fromMinute,
    endMinute: fromMinute + minutes * 60,
    pps: between(draw, 40, 90) * 1_000,
    packetBytes: kind.packetBytes,
  };
}

/** Seconds after which the detector is sure, and between two reports of it. */
const detectionSeconds = 3;
const reportSeconds = 10;

/**
 * What the detector reports of an attack on one of its servers, as a real sensor does: when it is detected, every ten
 * seconds, and when it is over, each report with all seconds since the one before.
 */
export function reportAttack(
  seed: number,
  { servers }: Hypervisor,
  attack: PlannedAttack,
): IncidentObservation[] {
  const { pps, packetBytes } = attack;
  const kind = kinds.find((one) => one.class === attack.class)!;
  const server = servers[attack.server]!;
  const startedAtMs = attack.fromMinute * 1000;
  const rate = { bps: pps * packetBytes * 8, pps };
  const whole = {
    id: uuidOf(`${seed} ${attack.fromMinute}`),
    capture: captureName,
    target: { kind: 'host', value: server.address },
    direction: 'inbound',
    class: attack.class,
    severity: 'attack',
    vectors: [{ class: attack.class, packetsShare: 1, bytesShare: 1, ports: kind.ports }],
    startedAtMs,
    detectedAtMs: startedAtMs + detectionSeconds * 1000,
    peak: { ...rate, bpsAtMs: startedAtMs, ppsAtMs: startedAtMs },
    coverage: 'complete',
    deviceKey: `${captureName}|${server.mac}`,
    threshold: { metric: kind.metric, value: kind.threshold },
    remotes: [{ prefix: '198.19.0.0/16', share: 1 }],
    drill: false,
    hasEvidence: false,
  } satisfies Partial<IncidentObservation>;
  return reportEnds(attack.endMinute - attack.fromMinute).map((end, index, ends): IncidentObservation => {
    const from = ends[index - 1] ?? 0;
    const endsAtMs = startedAtMs + end * 1000;
    const isOver = index === ends.length - 1;
    return {
      ...whole,
      revision: index + 1,
      state: isOver ? 'recovered' : 'active',
      lastObservedAtMs: endsAtMs,
      recoveredAtMs: isOver ? endsAtMs : null,
      current: isOver ? null : rate,
      totals: { bytes: pps * packetBytes * end, packets: pps * end },
      seconds: Array.from({ length: end - from }, (_, i) => ({
        atMs: startedAtMs + (from + i) * 1000,
        ...rate,
      })),
    };
  });
}

/** Seconds into an attack at which its reports end. */
function reportEnds(seconds: number): number[] {
  const ends: number[] = [];
  for (let end = detectionSeconds; end < seconds; end += reportSeconds) ends.push(end);
  return [...ends, seconds];
}

/** A UUID that follows from a text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`];
  return `${parts.join('-')}-${hex.slice(20, 32)}`;
}
