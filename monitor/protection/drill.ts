/** Drills: which attacks can be rehearsed, and whether the thresholds of an address would find one. */
import { CodedError } from '#common/errors/index.ts';
import {
  type AttackClass,
  type AttackDirection,
  attackDirections,
  type Metric,
  type ThresholdValues,
} from '#contracts/sensor-api/detection.ts';
import { parseRate } from './thresholds.ts';

export const drillSecondsMax = 600;
/** Sensors fetch their plan every 30 seconds: by then each of them knows the drill from its first second on. */
export const drillDelaySeconds = 45;
const ppsMax = 1e8;

/** What can be rehearsed, with the bytes of one packet and the metrics that count it beside all packets and bits. */
const shapes = {
  syn_flood: { bytes: 60, metrics: ['syn_pps'] },
  udp_flood: { bytes: 512, metrics: ['udp_pps', 'udp_bps'] },
  amplification: { bytes: 1200, metrics: ['amplification_bps', 'udp_pps', 'udp_bps'] },
  icmp_flood: { bytes: 84, metrics: ['icmp_pps'] },
  fragment_flood: { bytes: 1400, metrics: ['fragment_pps'] },
  ack_flood: { bytes: 60, metrics: [] },
  rst_flood: { bytes: 40, metrics: [] },
  synack_reflection: { bytes: 60, metrics: [] },
  gre_flood: { bytes: 512, metrics: [] },
} as const satisfies Partial<Record<AttackClass, { bytes: number; metrics: readonly Metric[] }>>;

export type DrillClass = keyof typeof shapes;
export const drillClasses = Object.keys(shapes) as DrillClass[];

/** Input of a form. */
export interface DrillInput {
  class: string;
  direction: string;
  /** A number such as 25000 or 25k. */
  pps: string;
  seconds: string;
  /** Any text: the customer is mailed, as about an attack. */
  mails_customer?: string;
}

export interface DrillOrder {
  class: DrillClass;
  direction: AttackDirection;
  pps: number;
  bps: number;
  seconds: number;
  mailsCustomer: boolean;
}

/** A drill as it is stored. */
export interface Drill {
  /** UUID. */
  id: string;
  address: string;
  direction: AttackDirection;
  class: string;
  pps: number;
  bps: number;
  startsAtMs: number;
  seconds: number;
  mailsCustomer: boolean;
  startedBy: string;
  stoppedAtMs: number | null;
  stoppedBy: string | null;
}

export type DrillState = 'waiting' | 'running' | 'ended' | 'stopped';

export function drillState(drill: Drill, nowMs: number): DrillState {
  if (drill.stoppedAtMs !== null) return 'stopped';
  if (nowMs < drill.startsAtMs) return 'waiting';
  return nowMs < drill.startsAtMs + drill.seconds * 1000 ? 'running' : 'ended';
}

/** A valid order. Throws `protection.invalid` with the wrong fields. */
export function parseDrill(input: DrillInput): DrillOrder {
  const fields: Record<string, string> = {};
  const found = drillClasses.find((known) => known === input.class);
  if (!found) fields.class = `The class is one of ${drillClasses.join(', ')}.`;
  const direction = attackDirections.find((known) => known === input.direction);
  if (!direction) fields.direction = 'The direction is inbound or outbound.';
  const pps = parseRate(input.pps);
  if (pps === null || pps < 1 || pps > ppsMax) fields.pps = 'Write 1 to 100M packets a second, such as 25k.';
  const seconds = /^\d{1,4}$/.test(input.seconds.trim()) ? Number(input.seconds) : 0;
  if (seconds < 1 || seconds > drillSecondsMax)
    fields.seconds = `A drill lasts 1 to ${drillSecondsMax} whole seconds.`;
  const [first] = Object.values(fields);
  if (first !== undefined || !found || !direction || pps === null)
    throw new CodedError('protection.invalid', first ?? '', { fields });
  const mailsCustomer = Boolean(input.mails_customer);
  return { class: found, direction, pps, bps: pps * shapes[found].bytes * 8, seconds, mailsCustomer };
}

/** The metric that a drill exceeds most, and by how much; null where nothing that counts it is judged. */
export function strongestOf(
  { class: of, pps, bps }: Pick<Drill, 'class' | 'pps' | 'bps'>,
  thresholds: ThresholdValues,
): { metric: Metric; ratio: number } | null {
  const counted: readonly Metric[] = shapes[of as DrillClass]?.metrics ?? [];
  let strongest: { metric: Metric; ratio: number } | null = null;
  for (const metric of [...counted, 'pps', 'bps'] as const) {
    const threshold = thresholds[metric];
    if (threshold === null) continue;
    const ratio = (metric.endsWith('bps') ? bps : pps) / threshold;
    if (!strongest || ratio > strongest.ratio) strongest = { metric, ratio };
  }
  return strongest;
}
