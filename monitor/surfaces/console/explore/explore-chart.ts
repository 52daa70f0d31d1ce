/** The explorer's chart: parts of the traffic over time, or in and out, with the period before and the 95th percentile. */
import type { Answer, Row } from '#monitor/explorer/index.ts';
import { onlyHref, sidesOf } from '#service-kit/explorer/index.ts';
import { type ChartData, type ChartSeries, coloursOf, REST_COLOUR } from '#service-kit/pages/index.ts';
import type { ExploreView } from './explore-view.ts';

export interface ChartInput {
  view: ExploreView;
  answer: Answer;
  around: Pick<ChartData, 'reasons' | 'flags'>;
}

export function exploreChartData({ view, answer, around }: ChartInput): ChartData {
  return {
    ...around,
    timesMs: answer.timesMs,
    stepMs: (answer.stepSeconds ?? 60) * 1000,
    range: { fromMs: answer.from * 1000, toMs: answer.to * 1000 },
    ...(view.by === null ? directions(view, answer) : parts(view, answer)),
  };
}

export const chartUnit = ({ measure }: Pick<Answer, 'measure'>) =>
  measure === 'packets' ? ('packets/s' as const) : ('bit/s' as const);

type Drawn = Pick<ChartData, 'series' | 'lines' | 'shape'>;

function directions(view: ExploreView, answer: Answer): Drawn {
  const { series } = answer;
  if (answer.measure === 'packets') {
    const main: ChartSeries = { label: 'Packets', values: series.pps };
    return { series: [main, ...ghostOfAll(answer)], lines: level(answer) };
  }
  const counted = sidesOf(view.filters);
  const sides: ChartSeries[] = [
    ...(counted.out ? [{ label: 'Out', role: 'out' as const, values: series.outBps }] : []),
    ...ghost(answer, series.previousOutBps, { label: 'Out, previous', role: 'out' }),
    ...(counted.in ? [{ label: 'In', role: 'in' as const, values: series.inBps }] : []),
    ...ghost(answer, series.previousInBps, { label: 'In, previous', role: 'in' }),
  ];
  return {
    series: sides,
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
    series: [...series, ...ghostOfAll(answer)],
    lines: level(answer),
    shape: view.shape === 'stacked' ? 'stacked' : 'lines',
  };
}

export const nameInLegend = (row: Pick<Row, 'key'>): string => row.key[0]!.label;

/** The period before; nothing where nothing of it is known. */
function ghost(
  { timesMs }: Answer,
  rates: readonly (number | null)[],
  drawn: Pick<ChartSeries, 'label' | 'role' | 'colour'>,
): ChartSeries[] {
  // As many values as the chart has times.
  const values = timesMs.map((_time, index) => rates[index] ?? null);
  return values.some((value) => value !== null) ? [{ ...drawn, isPrevious: true, values }] : [];
}

const ghostOfAll = (answer: Answer) =>
  ghost(answer, answer.series.previous, { label: 'All, previous', colour: REST_COLOUR });

const level = (answer: Answer) =>
  answer.percentile95 === null ? [] : [{ label: '95th percentile', value: answer.percentile95 }];
