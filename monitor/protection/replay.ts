/**
 * What other thresholds would have found in stored minutes ("what if"). Pure.
 *
 * A minute keeps the largest rate of one second and the largest mean of ten seconds (clock-aligned) of each metric. A sensor
 * decides by single seconds: two of three at `fastTriggerRatio` times a threshold, or a mean of five at the threshold with
 * at least two of them there. So some minutes are certain, in others an incident is possible, and all others can have none:
 *
 * - No second reached a threshold, or none reached that ratio and the ten seconds carry less than two at it: none.
 * - The sum of ten seconds is so large that one half of them must have decided: certain.
 */
import {
  type AttackDirection,
  fastTriggerRatio,
  type Metric,
  metrics,
  type ThresholdSet,
} from '#contracts/sensor-api/detection.ts';

/** The largest rates of one address, direction and minute, by metric in the order of `metrics`. */
export interface MinuteMaxima {
  /** Start, unix milliseconds. */
  minuteMs: number;
  direction: AttackDirection;
  oneSecond: readonly number[];
  tenSeconds: readonly number[];
}

/** Minutes with traffic over the thresholds that would have been one incident. */
export interface Finding {
  direction: AttackDirection;
  /** Start of the first and end of the last minute, unix milliseconds. */
  fromMs: number;
  toMs: number;
  /** False: possible, but the stored rates do not decide it. */
  isCertain: boolean;
  /** The metric that was exceeded most, by the strongest second. */
  metric: Metric;
  rate: number;
  /** `rate` in thresholds. */
  ratio: number;
}

/** Two loud seconds of ten. */
const twoOfTen = 0.2;
/** A second that is below this part of a threshold decides nothing, so three of a half may not count. */
const worthLooking = 0.3;
/** Below this part of the thresholds that were in force, sensors store the rates of all traffic, ordinary included. */
const lookedAtRatio = 0.2;
/** Rates are stored as whole numbers. */
const rounding = 0.5;
/** Sixty healthy seconds end an incident, and the same attack within five minutes continues it. */
const sameIncidentMs = 6 * 60_000;

/**
 * The incidents that these thresholds would have opened, in order. `minutes` are in order of time; several rows of a minute
 * are what several captures saw, and the strongest counts. `inForce` are the thresholds that sensors judged by.
 */
export function replay(
  minutes: Iterable<MinuteMaxima>,
  thresholds: ThresholdSet,
  inForce: ThresholdSet,
): Finding[] {
  const found: Finding[] = [];
  const open: Partial<Record<AttackDirection, Finding>> = {};
  for (const minute of minutes) {
    const judged = judgeMinute(minute, thresholds, inForce);
    if (!judged) continue;
    const { direction, minuteMs } = minute;
    const before = open[direction];
    if (before && minuteMs - before.toMs < sameIncidentMs) {
      before.toMs = Math.max(before.toMs, minuteMs + 60_000);
      before.isCertain ||= judged.isCertain;
      if (judged.ratio > before.ratio) Object.assign(before, strongestOf(judged));
      continue;
    }
    const finding = { direction, fromMs: minuteMs, toMs: minuteMs + 60_000, ...judged };
    open[direction] = finding;
    found.push(finding);
  }
  return found.sort((a, b) => a.fromMs - b.fromMs);
}

type Judged = Pick<Finding, 'isCertain' | 'metric' | 'rate' | 'ratio'>;

const strongestOf = ({ metric, rate, ratio }: Judged) => ({ metric, rate, ratio });

/** Null: no incident can have begun in this minute. */
function judgeMinute(
  { direction, oneSecond, tenSeconds }: MinuteMaxima,
  thresholds: ThresholdSet,
  inForce: ThresholdSet,
): Judged | null {
  let strongest: Judged | null = null;
  let isCertain = false;
  // A second's ratio is the largest of its metrics, so ten seconds carry at most the sum of them.
  let tenRatio = 0;
  for (const [i, metric] of metrics.entries()) {
    const threshold = thresholds[direction][metric];
    if (threshold === null) continue;
    const rate = oneSecond[i]!;
    const ratio = (rate + rounding) / threshold;
    tenRatio += (tenSeconds[i]! + rounding) / threshold;
    if (!strongest || ratio > strongest.ratio) strongest = { isCertain, metric, rate, ratio };
    isCertain ||= mustDecide(rate, tenSeconds[i]!, threshold, inForce[direction][metric]);
  }
  if (!strongest || strongest.ratio < 1) return null;
  if (strongest.ratio < fastTriggerRatio && tenRatio < twoOfTen) return null;
  return { ...strongest, ratio: strongest.rate / thresholds[direction][strongest.metric]!, isCertain };
}

/**
 * True when one half of the ten seconds must have reached a mean of the threshold with two seconds at it. A half that did
 * not has one second of at most the largest and four below the threshold, or less than five thresholds in all.
 */
function mustDecide(one: number, ten: number, threshold: number, inForce: number | null): boolean {
  // A metric that was not judged was never looked at closely.
  if (inForce === null) return false;
  const sum = 10 * (ten - rounding - lookedAtRatio * inForce);
  const undecided = Math.max((5 + 3 * worthLooking) * threshold, one + rounding + 4 * threshold);
  return sum >= 2 * undecided;
}

/** Least rates of one second by metric; null: no rate matters. */
export type Floors = Readonly<Record<AttackDirection, readonly (number | null)[]>>;

/** The rates below which a minute cannot matter to any of these thresholds: what need not be read. */
export function floorsOf(...sets: readonly ThresholdSet[]): Floors {
  const of = (direction: AttackDirection) =>
    metrics.map((metric) => {
      const found = sets.map((set) => set[direction][metric]).filter((value) => value !== null);
      return found.length === 0 ? null : Math.max(0, Math.min(...found) - 2 * rounding);
    });
  return { inbound: of('inbound'), outbound: of('outbound') };
}
