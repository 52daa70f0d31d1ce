/** From sums of facts to an answer: rates, gaps, the rest, and the period before beside all of them. */

import { CodedError } from '#common/errors/index.ts';
import type { Explored, ExploredAmount } from '#monitor/facts/index.ts';
import {
  type Amount,
  type Course,
  type Measure,
  minus,
  percentile95,
  type Row,
  restRates,
  type Sides,
  seriesOf,
  shareOut,
  type Value,
} from '#service-kit/explorer/index.ts';
import type { Answer } from './query.ts';
import { type Query, stepsMax } from './query.ts';

type Rates = (number | null)[];

/** What was read of one period. */
export interface Period {
  steps: Steps;
  explored: Explored;
}

/** Of each direction: bit/s. */
const inward = (amount: ExploredAmount): number => amount.inBytes * 8;
const outward = (amount: ExploredAmount): number => amount.outBytes * 8;
/** Of the measure: bit/s of both directions, or packets/s. */
const ofMeasure = (measure: Measure) => (amount: ExploredAmount) =>
  measure === 'packets' ? (amount.packets ?? 0) : inward(amount) + outward(amount);

const amountOf = ({ inBytes, outBytes, packets }: ExploredAmount): Amount => ({ inBytes, outBytes, packets });

/** The mean over observed minutes of each step; null without one, and 0 where nothing was seen in any. */
function ratesOf(
  { steps, explored }: Period,
  row: number | null,
  read: (amount: ExploredAmount) => number,
): Rates {
  const observed = new Map(explored.observed.map((one) => [one.timeMs, one.minutes]));
  const amounts = new Map(
    explored.steps.filter((one) => one.row === row).map((one) => [one.timeMs, one as ExploredAmount]),
  );
  return listTimes(steps).map((timeMs) => {
    const minutes = observed.get(timeMs) ?? 0;
    const amount = amounts.get(timeMs);
    return minutes === 0 ? null : (amount ? read(amount) : 0) / (minutes * 60);
  });
}

function courseOf(period: Period, sides: Sides, measure: Measure): Course {
  const observed = new Map(period.explored.observed.map((one) => [one.timeMs, one.minutes]));
  const side = (isCounted: boolean, read: typeof inward) =>
    ratesOf(period, null, read).map((rate) => (isCounted ? rate : null));
  return {
    ...{ inBps: side(sides.in, inward), outBps: side(sides.out, outward) },
    rates: ratesOf(period, null, ofMeasure(measure)),
    minutes: listTimes(period.steps).map((timeMs) => observed.get(timeMs) ?? 0),
  };
}

/** Bytes of the directions that count. */
function ofSides({ steps, explored }: Period, sides: Sides): Period {
  if (sides.in && sides.out) return { steps, explored };
  const of = <T extends ExploredAmount>(amount: T): T => ({
    ...amount,
    inBytes: sides.in ? amount.inBytes : 0,
    outBytes: sides.out ? amount.outBytes : 0,
  });
  const rows = explored.rows.map(of);
  return {
    steps,
    explored: { ...explored, rows, total: of(explored.total), steps: explored.steps.map(of), ownScans: null },
  };
}

/** The parts of an answer that follow from the sums alone. */
export function buildAnswer(
  period: Period,
  periodBefore: Period | null,
  options: {
    measure: Measure;
    label: (key: readonly (string | null)[]) => Value[];
    /** Which bytes count. */
    sides: Sides;
  },
): Omit<
  Answer,
  'from' | 'to' | 'stepSeconds' | 'measure' | 'by' | 'source' | 'grains' | 'newestMs' | 'limits'
> {
  const { measure, label, sides } = options;
  const now = ofSides(period, sides);
  const before = periodBefore && ofSides(periodBefore, sides);
  const { explored, steps } = now;
  const course = courseOf(now, sides, measure);
  const textOf = (key: readonly (string | null)[]) => JSON.stringify(key);
  const earlier = new Map(before?.explored.rows.map((one) => [textOf(one.key), amountOf(one)]));
  const nothing: Amount = { inBytes: 0, outBytes: 0, packets: measure === 'packets' ? 0 : null };
  const rows = explored.rows.map(
    (one, place): Omit<Row, 'share'> => ({
      key: label(one.key),
      amount: amountOf(one),
      previous: before ? (earlier.get(textOf(one.key)) ?? nothing) : null,
      rates: ratesOf(now, place, ofMeasure(measure)),
    }),
  );
  const groups = explored.groups - rows.length;
  const leave = (of: Explored) => minus(of.total, ...of.rows);
  const rest = {
    ...{ groups, amount: leave(explored), previous: before && leave(before.explored) },
    rates: restRates(course.rates, rows),
  };
  const isBytes = measure === 'bytes';
  return {
    ...shareOut(measure, amountOf(explored.total), { rows, rest: groups > 0 ? rest : null, apart: [] }),
    ownScans: explored.ownScans,
    previousTotal: before && amountOf(before.explored.total),
    timesMs: listTimes(steps),
    series: seriesOf(measure, course, before && courseOf(before, sides, measure)),
    percentile95: percentile95(course.rates),
    percentile95In: isBytes ? percentile95(course.inBps) : null,
    percentile95Out: isBytes ? percentile95(course.outBps) : null,
    percentileSeconds: steps.stepSeconds,
  };
}

// From a query's range to the seconds that are read, and to the length of a step.

/** Steps that a range of at most so many seconds gets by itself: what is kept is read as it is kept. */
const automatic = [
  [6 * 3600, 60],
  [26 * 3600, 600],
  [15 * 86_400, 3600],
  [62 * 86_400, 21_600],
] as const;

export interface Steps {
  from: number;
  to: number;
  stepSeconds: number | null;
}

/** `isKeptByHour`: nothing between minutes and hours is kept of what is asked. A range up to now ends with the step that holds now, as on every chart. Throws `explorer.too_many_steps`. */
export function chooseSteps(
  query: Pick<Query, 'range' | 'step'>,
  nowSecond: number,
  isKeptByHour = false,
): Steps {
  const { range, step } = query;
  const seconds = secondsOf(query);
  const stepSeconds = step === 'auto' ? automaticStep(seconds, isKeptByHour) : step;
  const unit = stepSeconds ?? 60;
  const to = 'lastSeconds' in range ? Math.ceil(nowSecond / unit) * unit : range.to;
  const from = 'lastSeconds' in range ? to - range.lastSeconds : range.from;
  if (stepSeconds !== null && (to - from) / stepSeconds > stepsMax)
    throw new CodedError(
      'explorer.too_many_steps',
      `A range of ${Math.round(seconds / 60)} minutes has more than ${stepsMax} steps of ${stepSeconds} seconds. Use step=auto, a longer step or a shorter range.`,
    );
  return { from, to, stepSeconds };
}

const secondsOf = ({ range }: Pick<Query, 'range'>) =>
  'lastSeconds' in range ? range.lastSeconds : range.to - range.from;

function automaticStep(seconds: number, isKeptByHour: boolean): number {
  const chosen = automatic.find(([most]) => seconds <= most)?.[1] ?? 86_400;
  return isKeptByHour && chosen > 60 ? Math.max(chosen, 3600) : chosen;
}

/**
 * The steps of a picture as small as a cell of a table: never shorter than those that are kept of everything, so that it does not cost
 * reading the minutes of a day.
 */
export function courseStep({ range, step }: Pick<Query, 'range' | 'step'>): Query['step'] {
  return typeof step === 'number' ? Math.max(step, automaticStep(secondsOf({ range }), true)) : step;
}

/** Starts of the steps that touch a range, unix milliseconds. */
function listTimes({ from, to, stepSeconds }: Steps): number[] {
  if (stepSeconds === null) return [];
  const first = Math.floor(from / stepSeconds) * stepSeconds;
  const count = Math.ceil((to - first) / stepSeconds);
  return Array.from({ length: count }, (_, i) => (first + i * stepSeconds) * 1000);
}
