/** An answer as a chart: parts of the traffic over time, or in and out, with the period before and the 95th percentile. */
import {
  type ChartData,
  type ChartSeries,
  coloursOf,
  REST_COLOUR,
  restLabel,
  type SankeyLink,
  type SankeyNode,
} from '#service-kit/pages/index.ts';
import type { Answer, Row } from './answer.ts';
import { sidesOf } from './filter-text.ts';
import { type ExploreView, type Measure, onlyHref } from './view.ts';

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

// From pairs of neighbouring columns to the picture of flows: the largest names by themselves, the others as one.

/** Names in one column; the others are one. */
const flowNamesMax = 8;

export interface FlowEnd {
  key: string;
  label: string;
  /** As a filter takes it; null: unknown. */
  value: string | null;
}

export interface FlowPair {
  /** Of `from`; `to` is in the next one. */
  column: number;
  from: FlowEnd;
  to: FlowEnd;
  size: number;
}

/** Traffic of which no name in this column is known. A space can't begin a key. */
const unclassified: FlowEnd = { key: ' unclassified', label: 'Unclassified', value: null };

/**
 * Pairs to `Unclassified` for what the pairs of a column leave of each name's total, so that a picture has the sums of the tables
 * beside it. What is unclassified in the column before stays so.
 */
export function unclassifiedPairs(
  column: number,
  totals: readonly { from: FlowEnd; size: number }[],
  pairs: readonly FlowPair[],
): FlowPair[] {
  const known = new Map<string, number>();
  for (const pair of pairs)
    if (pair.column === column) known.set(pair.from.key, (known.get(pair.from.key) ?? 0) + pair.size);
  return totals.flatMap(({ from, size }) => {
    const left = size - (known.get(from.key) ?? 0);
    return left > 0 ? [{ column, from, to: unclassified, size: left }] : [];
  });
}

/** What goes from a column's names into the next column, by the name there: the totals of that column. */
export function totalsOfNext(column: number, pairs: readonly FlowPair[]): { from: FlowEnd; size: number }[] {
  const ofNext = Map.groupBy(
    pairs.filter((pair) => pair.column === column),
    ({ to }) => to.key,
  );
  return [...ofNext.values()].map((of) => ({
    from: of[0]!.to,
    size: of.reduce((sum, { size }) => sum + size, 0),
  }));
}

export interface FlowGraphOptions {
  /** Number of columns. */
  columns: number;
  /** Whose names have colours, which their flows take. */
  colourColumn: number;
  /** Name of a column's values, such as `server`. */
  nameOf: (column: number) => string;
  hrefOf: (column: number, value: string) => string;
}

export function flowGraph(
  pairs: readonly FlowPair[],
  { columns, colourColumn, nameOf, hrefOf }: FlowGraphOptions,
): { nodes: SankeyNode[]; links: SankeyLink[] } {
  const top = Array.from({ length: columns }, (_, column) => largest(pairs, column));
  const colours = coloursOf([...top[colourColumn]!]);
  const nodes = new Map<string, SankeyNode>();
  const links = new Map<string, SankeyLink>();
  const nodeOf = ({ key, label, value }: FlowEnd, column: number): SankeyNode => {
    if (key === unclassified.key) return { id: `${column} ${key}`, label, column, colour: REST_COLOUR };
    if (!top[column]!.has(key)) {
      const label = restLabel(nameOf(column));
      return { id: `${column} rest`, label, column, colour: REST_COLOUR, isRest: true };
    }
    return {
      // A space can't begin a key, so this is no name of the rest.
      id: `${column}  ${key}`,
      ...{ label, column },
      href: value === null ? undefined : hrefOf(column, value),
      colour: column === colourColumn ? colours.get(key) : undefined,
    };
  };
  for (const pair of pairs) {
    const [from, to] = [nodeOf(pair.from, pair.column), nodeOf(pair.to, pair.column + 1)];
    nodes.set(from.id, from);
    nodes.set(to.id, to);
    const key = JSON.stringify([from.id, to.id]);
    const { colour } = pair.column === colourColumn ? from : to;
    const flow = links.get(key) ?? { from: from.id, to: to.id, value: 0, colour };
    flow.value += pair.size;
    links.set(key, flow);
  }
  return { nodes: [...nodes.values()], links: [...links.values()] };
}

/** The names of a column that stand by themselves, largest first; a column in the middle is counted from its left. */
function largest(pairs: readonly FlowPair[], column: number): Set<string> {
  const sums = new Map<string, number>();
  for (const pair of pairs) {
    if (pair.column !== Math.max(0, column - 1)) continue;
    const { key } = column === 0 ? pair.from : pair.to;
    if (key !== unclassified.key) sums.set(key, (sums.get(key) ?? 0) + pair.size);
  }
  const bySize = [...sums].sort(([, a], [, b]) => b - a).slice(0, flowNamesMax);
  return new Set(bySize.map(([key]) => key));
}
