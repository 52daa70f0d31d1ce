/** An answer as a chart: parts of the traffic over time, or in and out, with the period before and the 95th percentile. */
import { type ChartData, type ChartSeries, coloursOf, REST_COLOUR } from '#service-kit/pages/index.ts';
import type { Answer, Row } from './answer.ts';
import { sidesOf } from './filter-text.ts';
import type { Measure } from './url-values.ts';
import { type ExploreView, onlyHref } from './view.ts';

/** What is drawn around the lines. */
export type ChartAround = Pick<ChartData, 'reasons' | 'flags' | 'areas'>;

export function answerChart(view: ExploreView, answer: Answer, around: ChartAround): ChartData {
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
  const side = (
    role: 'in' | 'out',
    values: readonly (number | null)[],
    previous: readonly (number | null)[],
  ): ChartSeries[] => {
    const label = role === 'in' ? 'In' : 'Out';
    return counted[role]
      ? [{ label, role, values }, ...ghost(answer, previous, { label: `${label}, previous`, role })]
      : [];
  };
  // A percentile of longer means than the steps is no level of them.
  const isOfSteps = (answer.percentileSeconds ?? 0) <= (answer.stepSeconds ?? 0);
  return {
    series: [
      ...side('out', series.outBps, series.previousOutBps),
      ...side('in', series.inBps, series.previousInBps),
    ],
    lines: [
      { label: '95th percentile out', role: 'out' as const, value: answer.percentile95Out },
      { label: '95th percentile in', role: 'in' as const, value: answer.percentile95In },
    ].flatMap(({ value, ...line }) => (value === null || !isOfSteps ? [] : [{ ...line, value }])),
  };
}

/** A rest below it is what is left of adding up fractions. */
const least: Readonly<Record<Measure, number>> = { bytes: 0.5, packets: 0.0001 };

function parts(view: ExploreView, answer: Answer): Drawn {
  const apart = answer.apart.filter(({ rates }) =>
    rates.some((rate) => rate !== null && rate >= least[answer.measure]),
  );
  const colours = coloursOf([...answer.rows.map(nameInLegend), ...apart.map(({ label }) => label)]);
  const series: ChartSeries[] = answer.rows.map((row) => {
    const { value } = row.key[0]!;
    return {
      label: nameInLegend(row),
      colour: colours.get(nameInLegend(row)),
      values: row.rates,
      href: value === null || view.by === null ? undefined : onlyHref(view, view.by, value),
    };
  });
  for (const { label, rates } of apart) series.push({ label, colour: colours.get(label), values: rates });
  if (answer.rest?.rates.some((rate) => rate !== null && rate >= least[answer.measure]))
    series.push({ label: 'Rest', colour: REST_COLOUR, values: answer.rest.rates });
  return {
    series: [...series, ...ghostOfAll(answer)],
    lines: level(answer),
    shape: view.shape === 'stacked' ? 'stacked' : 'lines',
  };
}

function nameInLegend({ key, details }: Pick<Row, 'key' | 'details'>): string {
  const { label } = key[0]!;
  return details?.service ? `${label} ${details.service}` : label;
}

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

/** Of in and out together, because that is what the lines are. */
const level = (answer: Answer) =>
  answer.percentile95 === null ? [] : [{ label: '95th percentile', value: answer.percentile95 }];
