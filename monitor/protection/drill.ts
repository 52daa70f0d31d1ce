/** Drills: which attacks can be rehearsed, and whether the thresholds of an address would find one. */
import { CodedError } from '#common/errors/index.ts';
import {
  type AttackClass,
  attackClasses,
  attackClassOf,
  attackClassRows,
} from '#contracts/attack-classes.ts';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import type { Metric, ThresholdValues } from '#contracts/sensor-api/detection.ts';
import { parseRate } from './thresholds.ts';

export const drillSecondsMax = 600;
/** Sensors fetch their plan every 30 seconds: by then each of them knows the drill from its first second on. */
export const drillDelaySeconds = 45;
const ppsMax = 1e8;

/** What can be rehearsed. */
export const drillClasses = attackClasses.filter((name) => attackClassRows[name].drillBytes !== undefined);

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
  class: AttackClass;
  direction: AttackDirection;
  pps: number;
  bps: number;
  seconds: number;
  mailsCustomer: boolean;
}

/** A drill as it is stored. */
export interface Drill extends Omit<DrillOrder, 'class'> {
  /** UUID. */
  id: string;
  address: string;
  class: string;
  startsAtMs: number;
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
  const bps = pps * attackClassRows[found].drillBytes! * 8;
  return { class: found, direction, pps, bps, seconds, mailsCustomer };
}

/** The metric that a drill exceeds most, and by how much; null where nothing that counts it is judged. */
export function strongestOf(
  { class: of, pps, bps }: Pick<Drill, 'class' | 'pps' | 'bps'>,
  thresholds: ThresholdValues,
): { metric: Metric; ratio: number } | null {
  const counted: readonly Metric[] = attackClassRows[attackClassOf(of)].metrics;
  let strongest: { metric: Metric; ratio: number } | null = null;
  for (const metric of [...counted, 'pps', 'bps'] as const) {
    const threshold = thresholds[metric];
    if (threshold === null) continue;
    const ratio = (metric.endsWith('bps') ? bps : pps) / threshold;
    if (!strongest || ratio > strongest.ratio) strongest = { metric, ratio };
  }
  return strongest;
}
