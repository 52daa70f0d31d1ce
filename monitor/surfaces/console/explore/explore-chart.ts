/** The explorer's chart: parts of the traffic over time, or in and out, with the period before and the 95th percentile. */
import type { Answer, Row } from '#monitor/explorer/index.ts';
import { type ChartData, type ChartSeries, coloursOf, REST_COLOUR } from '#service-kit/pages/index.ts';
import { type ExploreView, onlyHref } from './explore-view.ts';

export interface ChartInput {
  view: ExploreView;
  answer: Answer;
  /** Of the period before, for the two directions; null where it was not asked for or parts are drawn. */
  before: Answer | null;
  around: Pick<ChartData, 'reasons' | 'flags'>;
}

export function exploreChartData({ view, answer, before, around }: ChartInput): ChartData {
  return {
    ...around,
    timesMs: answer.timesMs,
    stepMs: (answer.stepSeconds ?? 60) * 1000,
    range: { fromMs: answer.from * 1000, toMs: answer.to * 1000 },
    ...(view.by === null ? directions(answer, before) : parts(view, answer)),
  };
}

export const chartUnit = ({ measure }: Pick<Answer, 'measure'>) =>
  measure === 'packets' ? ('packets/s' as const) : ('bit/s' as const);

type Drawn = Pick<ChartData, 'series' | 'lines' | 'shape'>;

function directions(answer: Answer, before: Answer | null): Drawn {
  const { series } = answer;
  if (answer.measure === 'packets') {
    const main: ChartSeries = { label: 'Packets', values: series.pps };
    return { series: [main, ...ghost(answer)], lines: level(answer) };
  }
  const side = (role: 'in' | 'out', label: string, key: 'inBps' | 'outBps'): ChartSeries[] => [
    { label, role, values: series[key] },
    ...(before
      ? [{ label: `${label}, previous`, role, isPrevious: true, values: fitted(before.series[key], answer) }]
      : []),
  ];
  return {
    series: [...side('out', 'Out', 'outBps'), ...side('in', 'In', 'inBps')],
    lines: [
      { label: '95th percentile out', role: 'out' as const, value: answer.percentile95Out },
      { label: '95th percentile in', role: 'in' as const, value: answer.percentile95In },
    ].flatMap(({ value, ...line }) => (value === null ? [] : [{ ...line, value }])),
  };
}

function parts(view: ExploreView, answer: Answer): Drawn {
  const colours = coloursOf(answer.rows.map(nameInLegend));
  const series: ChartSeries[] = answer.rows.map((row) => {
    const { value } = row.key[0]!;
    return {
      label: nameInLegend(row),
      colour: colours.get(nameInLegend(row)),
      values: row.rates,
      href: value === null || view.by === null ? undefined : onlyHref(view, view.by, value),
    };
  });
  if (answer.rest && answer.rest.groups > 0)
    series.push({ label: 'the rest', colour: REST_COLOUR, values: answer.rest.rates });
  return {
    series: [...series, ...ghost(answer)],
    lines: level(answer),
    shape: view.shape === 'stacked' ? 'stacked' : 'lines',
  };
}

export const nameInLegend = (row: Pick<Row, 'key'>): string => row.key[0]!.label;

function ghost(answer: Answer): ChartSeries[] {
  const values = fitted(answer.series.previous, answer);
  return values.some((value) => value !== null)
    ? [{ label: 'All, previous', isPrevious: true, colour: REST_COLOUR, values }]
    : [];
}

const level = (answer: Answer) =>
  answer.percentile95 === null ? [] : [{ label: '95th percentile', value: answer.percentile95 }];

/** As many values as the chart has times. */
function fitted(values: readonly (number | null)[], { timesMs }: Answer): (number | null)[] {
  return timesMs.map((_time, index) => values[index] ?? null);
}
