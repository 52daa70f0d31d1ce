/** The chart of a traffic view: in and out, or a line for each of the largest values. */
import { type ExploredSeries, restValue, type StepRow, type UsageStep } from '#operations/protect/index.ts';
import {
  type ChartArea,
  type ChartData,
  type ChartLine,
  type ChartReason,
  type ChartSeries,
  coloursOf,
  type Range,
  REST_COLOUR,
} from '#service-kit/pages/index.ts';
import { lossNote } from './reasons.ts';

/** Lines of a chart beside the rest. */
export const linesMax = 7;

/** In and out of all minutes, with what was expected and what was an attack. */
export function trafficChartData(
  steps: readonly StepRow[],
  range: Range,
  areas: readonly ChartArea[],
): ChartData {
  const hasExpected = steps.some((step) => step.expectedBps !== null);
  const hasAttack = steps.some((step) => (step.ddosBps ?? 0) > 0);
  return {
    timesMs: steps.map((step) => step.at.getTime()),
    ...frameOf(range),
    areas,
    notes: new Map(steps.map((step) => [step.at.getTime(), lossNote(step.reason)])),
    series: [
      { label: 'In', role: 'in', values: steps.map((step) => step.inboundBps) },
      { label: 'Out', role: 'out', values: steps.map((step) => step.outboundBps) },
      ...(hasExpected
        ? [{ label: 'Expected, in and out', isExpected: true, values: steps.map((step) => step.expectedBps) }]
        : []),
      ...(hasAttack
        ? [{ label: 'Suspected attack', role: 'attack' as const, values: steps.map((step) => step.ddosBps) }]
        : []),
    ],
  };
}

const frameOf = (range: Range) => ({
  stepMs: range.stepSeconds * 1000,
  range: { fromMs: range.fromMs, toMs: range.toMs },
});

/** In and out of several servers. */
export function directionChartData(
  steps: readonly UsageStep[],
  range: Range,
  directions: { in: boolean; out: boolean },
): ChartData {
  const series: ChartSeries[] = [];
  if (directions.in) series.push({ label: 'In', role: 'in', values: steps.map((step) => step.inboundBps) });
  if (directions.out)
    series.push({ label: 'Out', role: 'out', values: steps.map((step) => step.outboundBps) });
  return { timesMs: steps.map((step) => step.at.getTime()), ...frameOf(range), series };
}

/** The 95th percentile of each direction that the chart has. */
export function percentileLines(
  total: { inboundP95: number | null; outboundP95: number | null } | null,
  directions: { in: boolean; out: boolean },
): ChartLine[] {
  const line = (label: string, value: number | null | undefined, role: 'in' | 'out'): ChartLine[] =>
    value === null || value === undefined || !directions[role]
      ? []
      : [{ label: `95th percentile, ${label}`, value, role }];
  return [...line('in', total?.inboundP95, 'in'), ...line('out', total?.outboundP95, 'out')];
}

/** A line for each of the servers with the most bytes, and one for the others. */
export function serversChartData(
  view: {
    times: readonly Date[];
    steps: ReadonlyMap<number, readonly UsageStep[]>;
    /** Ids, most bytes first. */
    order: readonly number[];
    nameOf: (serverId: number) => string;
    directions: { in: boolean; out: boolean };
  },
  range: Range,
): ChartData {
  const { times, steps, directions } = view;
  const lineOf = (ids: readonly number[]) => {
    const sums = new Map<number, number>();
    for (const step of ids.flatMap((id) => steps.get(id) ?? [])) {
      const rate =
        (directions.in ? (step.inboundBps ?? 0) : 0) + (directions.out ? (step.outboundBps ?? 0) : 0);
      sums.set(step.at.getTime(), (sums.get(step.at.getTime()) ?? 0) + rate);
    }
    return times.map((at) => sums.get(at.getTime()) ?? null);
  };
  const named = view.order.slice(0, linesMax);
  const others = view.order.slice(linesMax);
  const data = linesChartData(
    times,
    [
      ...named.map((id) => ({ value: view.nameOf(id), rates: lineOf([id]) })),
      ...(others.length > 0 ? [{ value: restValue, rates: lineOf(others) }] : []),
    ],
    range,
  );
  return { ...data, reasons: missingServers(view, range) };
}

/** Steps in which some of the servers were not observed: a sum without them would look like less traffic. */
function missingServers(
  {
    times,
    steps,
    order,
    nameOf,
  }: {
    times: readonly Date[];
    steps: ReadonlyMap<number, readonly UsageStep[]>;
    order: readonly number[];
    nameOf: (serverId: number) => string;
  },
  range: Range,
): ChartReason[] {
  const stepMs = range.stepSeconds * 1000;
  const observed = new Map(order.map((id) => [id, new Set(steps.get(id)?.map((step) => step.at.getTime()))]));
  const reasons: ChartReason[] = [];
  for (const ms of times.map((at) => at.getTime())) {
    const missing = order.filter((id) => !observed.get(id)!.has(ms));
    if (missing.length === 0) continue;
    const text = `no observation of ${missing.length === 1 ? nameOf(missing[0]!) : `${missing.length} servers`}`;
    const last = reasons.at(-1);
    if (last && last.toMs === ms && last.text === text) last.toMs = ms + stepMs;
    else reasons.push({ fromMs: ms, toMs: ms + stepMs, text });
  }
  return reasons;
}

/** A line for each value. */
export function linesChartData(
  times: readonly Date[],
  series: readonly ExploredSeries[],
  range: Range,
): ChartData {
  const colours = coloursOf(series.map(({ value }) => value).filter((value) => value !== restValue));
  return {
    timesMs: times.map((at) => at.getTime()),
    ...frameOf(range),
    // Parts of a whole.
    shape: 'stacked',
    series: series.map(({ value, rates }) => ({
      label: value,
      values: rates,
      colour: value === restValue ? REST_COLOUR : colours.get(value),
    })),
  };
}
