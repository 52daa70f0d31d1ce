/** From sums of facts to an answer: rates, gaps, shares, the rest, and the period before beside all of them. */
import type { Explored, ExploredAmount } from '#monitor/facts/index.ts';
import {
  type Amount,
  type Measure,
  minus,
  percentile95,
  type Rest,
  type Row,
  restRates,
  type Sides,
  sizeOf,
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

/** Of the measure: bit/s of both directions, or packets/s. */
const rateOf = (amount: ExploredAmount, measure: Measure): number =>
  measure === 'packets' ? (amount.packets ?? 0) : (amount.inBytes + amount.outBytes) * 8;

/** Of each direction: bit/s. */
const inward = (amount: ExploredAmount): number => amount.inBytes * 8;
const outward = (amount: ExploredAmount): number => amount.outBytes * 8;

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

const noAmount = (measure: Measure): Amount => ({
  inBytes: 0,
  outBytes: 0,
  packets: measure === 'packets' ? 0 : null,
});

const amountOf = ({ inBytes, outBytes, packets }: ExploredAmount): Amount => ({ inBytes, outBytes, packets });
const textOf = (key: readonly (string | null)[]) => JSON.stringify(key);

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
): Pick<
  Answer,
  | 'rows'
  | 'rest'
  | 'apart'
  | 'total'
  | 'ownScans'
  | 'previousTotal'
  | 'timesMs'
  | 'series'
  | 'percentile95'
  | 'percentile95In'
  | 'percentile95Out'
  | 'percentileSeconds'
> {
  const { measure, label, sides } = options;
  const now = ofSides(period, sides);
  const before = periodBefore && ofSides(periodBefore, sides);
  const { explored } = now;
  const all = (amount: ExploredAmount) => rateOf(amount, measure);
  const total = ratesOf(now, null, all);
  const isBytes = measure === 'bytes';
  const side = (of: Period, isCounted: boolean, read: typeof inward) =>
    ratesOf(of, null, read).map((rate) => (isCounted ? rate : null));
  const inBps = side(now, sides.in, inward);
  const outBps = side(now, sides.out, outward);
  const earlier = new Map(before?.explored.rows.map((one) => [textOf(one.key), amountOf(one)]));
  const size = sizeOf(explored.total, measure) ?? 0;
  const shareOf = (amount: Amount) => (size > 0 ? (sizeOf(amount, measure) ?? 0) / size : 0);
  const rows = explored.rows.map(
    (one, place): Row => ({
      key: label(one.key),
      amount: amountOf(one),
      share: shareOf(one),
      previous: before ? (earlier.get(textOf(one.key)) ?? noAmount(measure)) : null,
      rates: ratesOf(now, place, all),
    }),
  );
  const observed = new Map(explored.observed.map((one) => [one.timeMs, one.minutes]));
  const timesMs = listTimes(now.steps);
  return {
    rows,
    rest: restOf(now, before, rows, total, shareOf),
    apart: [],
    total: amountOf(explored.total),
    ownScans: explored.ownScans,
    previousTotal: before ? amountOf(before.explored.total) : null,
    timesMs,
    series: {
      inBps,
      outBps,
      pps: isBytes ? [] : total,
      minutes: timesMs.map((timeMs) => observed.get(timeMs) ?? 0),
      previous: before ? ratesOf(before, null, all) : [],
      previousInBps: before && isBytes ? side(before, sides.in, inward) : [],
      previousOutBps: before && isBytes ? side(before, sides.out, outward) : [],
    },
    percentile95: percentile95(total),
    percentile95In: isBytes ? percentile95(inBps) : null,
    percentile95Out: isBytes ? percentile95(outBps) : null,
    percentileSeconds: now.steps.stepSeconds,
  };
}

function restOf(
  { explored }: Period,
  before: Period | null,
  rows: readonly Row[],
  total: Rates,
  shareOf: (amount: Amount) => number,
): Rest | null {
  const groups = explored.groups - explored.rows.length;
  if (groups <= 0) return null;
  const amount = minus(explored.total, ...explored.rows);
  return {
    groups,
    amount,
    share: shareOf(amount),
    previous: before ? minus(before.explored.total, ...before.explored.rows) : null,
    rates: restRates(total, rows),
  };
}
