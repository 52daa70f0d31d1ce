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
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import {
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
  /** Its sensor counted by flows, so that ordinary traffic such as tunnels counts as attack too. */
  isOlderRule?: boolean;
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
/** An incident goes on while it has seconds of this part of a threshold. */
const goesOnRatio = 0.7;
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
    const { fires, ...judged } = judgeMinute(minute, thresholds, inForce);
    if (!fires) continue;
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

/** What becomes of an incident by other thresholds. */
export interface ComparedIncident extends Omit<Finding, 'ratio'> {
  outcome: 'kept' | 'lost' | 'new';
  /** `rate` in thresholds that were asked about, and in present ones; null: not judged. */
  ratio: number | null;
  presentRatio: number | null;
  /** Some of its minutes were counted by flows. */
  isOlderRule: boolean;
}

/**
 * Compares the incidents of two sets of thresholds minute by minute, in order: attacks in neighbouring minutes are one incident for a
 * sensor, and one of them may be lost while the other is kept. A minute in which an incident goes on is part of it. Of a lost one,
 * metric, rate and certainty are those of the present thresholds.
 */
export function compare(
  minutes: Iterable<MinuteMaxima>,
  asked: ThresholdSet,
  present: ThresholdSet,
): ComparedIncident[] {
  const found: (ComparedIncident & { strength: number })[] = [];
  const open: Partial<Record<AttackDirection, (typeof found)[number]>> = {};
  for (const rows of rowsByMinute(minutes)) {
    const { direction, minuteMs } = rows[0]!;
    const before = open[direction];
    const goesOn = before?.outcome === 'kept' && before.toMs === minuteMs;
    const [byAsked, byPresent] = [asked, present].map((set) => strongestRow(rows, set, present));
    const outcome = outcomeOf(byAsked!, byPresent!, goesOn);
    if (!outcome) continue;
    const { ratio: strength, fires: _, ...judged } = (outcome === 'lost' ? byPresent : byAsked)!;
    const isOlderRule = rows.some((row) => row.isOlderRule ?? false);
    const inThresholds = (set: ThresholdSet) => {
      const threshold = set[direction][judged.metric];
      return threshold === null ? null : judged.rate / threshold;
    };
    const one = {
      ...{ outcome, direction, ...judged, strength, isOlderRule, fromMs: minuteMs, toMs: minuteMs + 60_000 },
      ...{ ratio: inThresholds(asked), presentRatio: inThresholds(present) },
    };
    if (before?.outcome === outcome && minuteMs - before.toMs < sameIncidentMs) {
      const { fromMs } = before;
      const isCertain = before.isCertain || one.isCertain;
      const isOlder = before.isOlderRule || isOlderRule;
      Object.assign(before, strength > before.strength ? one : {}, {
        fromMs,
        isCertain,
        isOlderRule: isOlder,
      });
      before.toMs = one.toMs;
      continue;
    }
    open[direction] = one;
    found.push(one);
  }
  return found.map(({ strength: _, ...one }) => one);
}

function outcomeOf(asked: Judged, present: Judged, goesOn: boolean): ComparedIncident['outcome'] | null {
  if (asked.fires && present.fires) return 'kept';
  if (present.fires) return goesOn && asked.ratio >= goesOnRatio ? 'kept' : 'lost';
  if (asked.fires) return goesOn && present.ratio >= goesOnRatio ? 'kept' : 'new';
  return null;
}

/** The rows of each minute and direction, in order of time. */
function* rowsByMinute(minutes: Iterable<MinuteMaxima>): Generator<MinuteMaxima[]> {
  let rows: MinuteMaxima[] = [];
  const parts = () =>
    attackDirections
      .map((direction) => rows.filter((row) => row.direction === direction))
      .filter((part) => part.length > 0);
  for (const row of minutes) {
    if (rows.length > 0 && rows[0]!.minuteMs !== row.minuteMs) {
      yield* parts();
      rows = [];
    }
    rows.push(row);
  }
  yield* parts();
}

/** The judgement of the strongest capture; one that fires goes before one that does not. */
function strongestRow(rows: readonly MinuteMaxima[], set: ThresholdSet, inForce: ThresholdSet): Judged {
  return rows
    .map((row) => judgeMinute(row, set, inForce))
    .reduce((a, b) => (b.fires && !a.fires ? b : a.fires && !b.fires ? a : b.ratio > a.ratio ? b : a));
}

interface Judged extends Pick<Finding, 'isCertain' | 'metric' | 'rate' | 'ratio'> {
  /** False: no incident can have begun in this minute. */
  fires: boolean;
}

const strongestOf = ({ metric, rate, ratio }: Pick<Judged, 'metric' | 'rate' | 'ratio'>) => ({
  metric,
  rate,
  ratio,
});

/** The metric that a minute exceeds most, or of which it has most. */
function judgeMinute(
  { direction, oneSecond, tenSeconds }: MinuteMaxima,
  thresholds: ThresholdSet,
  inForce: ThresholdSet,
): Judged {
  let strongest: Metric = 'pps';
  let most = 0;
  let isCertain = false;
  // A second's ratio is the largest of its metrics, so ten seconds carry at most the sum of them.
  let tenRatio = 0;
  for (const [i, metric] of metrics.entries()) {
    const threshold = thresholds[direction][metric];
    if (threshold === null) continue;
    const ratio = (oneSecond[i]! + rounding) / threshold;
    tenRatio += (tenSeconds[i]! + rounding) / threshold;
    if (ratio > most) [strongest, most] = [metric, ratio];
    isCertain ||= mustDecide(oneSecond[i]!, tenSeconds[i]!, threshold, inForce[direction][metric]);
  }
  const rate = oneSecond[metrics.indexOf(strongest)]!;
  const ratio = most === 0 ? 0 : rate / thresholds[direction][strongest]!;
  const fires = most >= fastTriggerRatio || (most >= 1 && tenRatio >= twoOfTen);
  return { fires, isCertain, metric: strongest, rate, ratio };
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
