/** The chart of a traffic view: in and out, or a line for each of the largest values. */
import type { ExploredSeries, StepRow, UsageStep } from '#operations/protect/index.ts';
import type { ChartArea, ChartData, ChartSeries, Range } from '#service-kit/pages/index.ts';
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

/** A line for each value. */
export function linesChartData(
  times: readonly Date[],
  series: readonly ExploredSeries[],
  range: Range,
): ChartData {
  return {
    timesMs: times.map((at) => at.getTime()),
    ...frameOf(range),
    series: series.map(({ value, rates }) => ({ label: value, values: rates })),
  };
}
