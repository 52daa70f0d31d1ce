/** The chart of a traffic view: in and out, or a line for each of the largest values. */
import { type ExploredSeries, restValue, type StepRow, type UsageStep } from '#operations/protect/index.ts';
import type { Sides } from '#service-kit/explorer/index.ts';
import {
  type ChartArea,
  type ChartData,
  type ChartLine,
  type ChartSeries,
  coloursOf,
  type Range,
  REST_COLOUR,
} from '#service-kit/pages/index.ts';
import { lossNote } from '../../parts/index.ts';

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
export function directionChartData(steps: readonly UsageStep[], range: Range, directions: Sides): ChartData {
  const series: ChartSeries[] = [];
  if (directions.in) series.push({ label: 'In', role: 'in', values: steps.map((step) => step.inboundBps) });
  if (directions.out)
    series.push({ label: 'Out', role: 'out', values: steps.map((step) => step.outboundBps) });
  return { timesMs: steps.map((step) => step.at.getTime()), ...frameOf(range), series };
}

/** The 95th percentile of each direction that the chart has. */
export function percentileLines(
  total: { inboundP95: number | null; outboundP95: number | null } | null,
  directions: Sides,
): ChartLine[] {
  const line = (label: string, value: number | null | undefined, role: 'in' | 'out'): ChartLine[] =>
    value === null || value === undefined || !directions[role]
      ? []
      : [{ label: `95th percentile, ${label}`, value, role }];
  return [...line('in', total?.inboundP95, 'in'), ...line('out', total?.outboundP95, 'out')];
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
