/** From sums of facts to an answer: rates, gaps, the rest, and the period before beside all of them. */
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
import { listTimes, type Steps } from './choose-steps.ts';
import type { Answer } from './query.ts';

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
