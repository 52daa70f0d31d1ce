/** The explorer's chart: parts of the traffic over time, or in and out, with the period before and the 95th percentile. */
import type {
  Exploration,
  ExploredCourse,
  ExploredLine,
  ExploredLines,
  ExploredTotal,
  RankedDimension,
} from '#operations/protect/index.ts';
import { onlyHref, sidesOf } from '#service-kit/explorer/index.ts';
import {
  type ChartData,
  type ChartReason,
  type ChartSeries,
  coloursOf,
  REST_COLOUR,
} from '#service-kit/pages/index.ts';
import { type FlagSource, type Flags, readExplorerFlags } from './flags.ts';
import { gapsOf } from './reasons.ts';
import type { TrafficView } from './traffic-view.ts';

/** With so few servers it is said which of them was not observed: a sum without it would look like less traffic. */
const namedServersMax = 30;
/** Rows of a table, whose pictures are of the same lines. */
export const tableRows = 10;

export interface ChartInput {
  lines: ExploredLines | null;
  course: ExploredCourse;
  previous: ExploredCourse | null;
  total: ExploredTotal;
  stepSeconds: number;
  /** Times at which nothing was observed, each with its reason. */
  gaps: readonly ChartReason[];
  /** What happened to the servers. */
  flags: Flags;
}

/** Reads what the chart of a view draws: the largest values, also where a table has another order. */
export async function readChart(
  explored: Exploration,
  view: TrafficView,
  flagSource: FlagSource,
): Promise<ChartInput> {
  const stepSeconds = explored.stepSecondsOf(view.by);
  const [lines, course, previous, total, flags] = await Promise.all([
    readLines(explored, view),
    explored.course(),
    view.compare !== null && stepSeconds === explored.stepSeconds ? explored.previousCourse() : null,
    explored.total(),
    readExplorerFlags(flagSource, explored, view),
  ]);
  return { lines, course, previous, total, stepSeconds, gaps: unobserved(explored, view, course), flags };
}

function unobserved(
  { servers, stepSeconds, nowMs }: Exploration,
  { range }: TrafficView,
  { times, minutes }: ExploredCourse,
): ChartReason[] {
  if (servers.length === 0) return [];
  const stepMs = stepSeconds * 1000;
  const created = servers.reduce(
    (least, { createdMs }) => Math.min(least, createdMs),
    Number.POSITIVE_INFINITY,
  );
  return gapsOf({
    steps: times.map((at, index) => ({ at, minutes: minutes[index]!, reason: null })),
    range: { fromMs: Math.floor(range.fromMs / stepMs) * stepMs, toMs: range.toMs, stepSeconds },
    createdMs: Math.min(created, times[0]?.getTime() ?? created),
    ...(servers.length > 1 && { before: 'before the first of these servers was created' }),
    off: [],
    nowMs,
  });
}

async function readLines(explored: Exploration, { by, top }: TrafficView): Promise<ExploredLines | null> {
  if (by === null) return null;
  const hasAll = by === 'server' && explored.servers.length <= namedServersMax;
  const count = hasAll ? namedServersMax : Math.max(top, tableRows);
  const ranking = await explored.rank(by, { limit: count });
  return explored.lines(ranking, { count, hasRest: true });
}

export const chartUnit = ({ measure }: Pick<TrafficView, 'measure'>) =>
  measure === 'packets' ? ('packets/s' as const) : ('bit/s' as const);

export function exploreChartData(view: TrafficView, input: ChartInput): ChartData {
  const { lines, course, stepSeconds } = input;
  const { range } = view;
  const frame = {
    stepMs: stepSeconds * 1000,
    range: { fromMs: range.fromMs, toMs: range.toMs },
    reasons: [
      ...input.gaps,
      ...(lines !== null && view.by === 'server' ? missing(view, lines, stepSeconds * 1000) : []),
    ],
    flags: input.flags.flags,
  };
  if (lines === null || view.by === null)
    return { ...frame, timesMs: course.times.map((at) => at.getTime()), ...directions(view, input) };
  const shown = foldLines(lines.lines, view.top);
  const timesMs = lines.times.map((at) => at.getTime());
  return {
    ...frame,
    timesMs,
    series: [...seriesOf(view, view.by, shown), ...ghost(view, input, timesMs)],
    lines: level(view, input),
    shape: view.shape,
  };
}

/** The largest lines and one for the others. */
export function foldLines(lines: readonly ExploredLine[], top: number): ExploredLine[] {
  const named = lines.filter((line) => !line.isRest);
  const others = [...named.slice(top), ...lines.filter((line) => line.isRest)];
  if (others.length === 0) return named.slice(0, top);
  const rates = others[0]!.rates.map((_, index) => {
    const known = others.map((line) => line.rates[index] ?? null).filter((rate) => rate !== null);
    return known.length === 0 ? null : known.reduce((sum, rate) => sum + rate, 0);
  });
  return [...named.slice(0, top), { value: null, label: 'Rest', isRest: true, rates }];
}

function seriesOf(view: TrafficView, by: RankedDimension, lines: readonly ExploredLine[]): ChartSeries[] {
  const colours = coloursOf(lines.filter((line) => !line.isRest).map(({ label }) => label));
  return lines.map(({ value, label, isRest, rates }) => ({
    label,
    values: rates,
    colour: isRest ? REST_COLOUR : colours.get(label),
    href: value === null ? undefined : onlyHref(view, by, value),
  }));
}

function directions(
  view: TrafficView,
  { course, previous, total, stepSeconds }: ChartInput,
): Pick<ChartData, 'series' | 'lines'> {
  const timesMs = course.times.map((at) => at.getTime());
  if (view.measure === 'packets') {
    const ghosts = ghost(view, { previous }, timesMs);
    return { series: [{ label: 'Packets', values: course.pps }, ...ghosts], lines: level(view, { course }) };
  }
  const side = (role: 'in' | 'out', key: 'inboundBps' | 'outboundBps'): ChartSeries[] => {
    const label = role === 'in' ? 'In' : 'Out';
    if (!sidesOf(view.filters)[role]) return [];
    const before = previous && fitted(previous, key, timesMs);
    return [
      { label, role, values: course[key] },
      ...(before ? [{ label: `${label}, previous`, role, isPrevious: true, values: before }] : []),
    ];
  };
  const line = (role: 'in' | 'out', value: number | null) =>
    value === null ? [] : [{ label: `95th percentile, ${role}`, role, value }];
  return {
    series: [...side('in', 'inboundBps'), ...side('out', 'outboundBps')],
    lines:
      stepSeconds >= total.percentileSeconds
        ? [...line('in', total.inboundP95), ...line('out', total.outboundP95)]
        : [],
  };
}

/** Everything together, in the unit of the view. */
function wholeOf({ measure }: TrafficView, course: ExploredCourse): (number | null)[] {
  if (measure === 'packets') return course.pps;
  return course.inboundBps.map((inbound, index) => {
    const outbound = course.outboundBps[index] ?? null;
    return inbound === null && outbound === null ? null : (inbound ?? 0) + (outbound ?? 0);
  });
}

function ghost(
  view: TrafficView,
  { previous }: Pick<ChartInput, 'previous'>,
  timesMs: readonly number[],
): ChartSeries[] {
  if (previous === null) return [];
  const byTime = new Map(
    wholeOf(view, previous).map((rate, index) => [previous.times[index]!.getTime(), rate]),
  );
  const values = timesMs.map((ms) => byTime.get(ms) ?? null);
  return [{ label: 'All, previous', isPrevious: true, colour: REST_COLOUR, values }];
}

function fitted(
  course: ExploredCourse,
  key: 'inboundBps' | 'outboundBps',
  timesMs: readonly number[],
): (number | null)[] {
  const byTime = new Map(course[key].map((rate, index) => [course.times[index]!.getTime(), rate]));
  return timesMs.map((ms) => byTime.get(ms) ?? null);
}

/** Of in and out together, because that is what the lines are. */
function level(view: TrafficView, { course }: Pick<ChartInput, 'course'>): ChartData['lines'] {
  const known = wholeOf(view, course)
    .filter((rate) => rate !== null)
    .sort((a, b) => a - b);
  if (known.length === 0) return [];
  return [{ label: '95th percentile of the steps', value: known[Math.ceil(known.length * 0.95) - 1]! }];
}

/** Steps in which some of the servers were not observed, or have no packets. */
function missing({ measure }: TrafficView, { times, lines }: ExploredLines, stepMs: number): ChartReason[] {
  const what = measure === 'packets' ? 'packets' : 'observation';
  const servers = lines.filter((line) => !line.isRest);
  // A rest means that not all of the servers have a line.
  if (servers.length < lines.length) return [];
  const reasons: ChartReason[] = [];
  times.forEach((at, index) => {
    const absent = servers.filter((line) => line.rates[index] === null);
    if (absent.length === 0) return;
    const text = `no ${what} of ${absent.length === 1 ? absent[0]!.label : `${absent.length} servers`}`;
    const last = reasons.at(-1);
    if (last && last.toMs === at.getTime() && last.text === text) last.toMs = at.getTime() + stepMs;
    else reasons.push({ fromMs: at.getTime(), toMs: at.getTime() + stepMs, text });
  });
  return reasons;
}

/** Points of a small picture of the whole range: means of what was observed, with its gaps. */
export function thinned(
  times: readonly Date[],
  rates: readonly (number | null)[],
  { fromMs, toMs, stepMs }: { fromMs: number; toMs: number; stepMs: number },
  most = 48,
): (number | null)[] {
  const count = Math.max(1, Math.min(most, Math.round((toMs - fromMs) / stepMs)));
  const places = Array.from({ length: count }, () => ({ sum: 0, steps: 0 }));
  times.forEach((at, index) => {
    const rate = rates[index] ?? null;
    const place =
      places[Math.min(count - 1, Math.floor(((at.getTime() - fromMs) / (toMs - fromMs)) * count))];
    if (rate === null || place === undefined) return;
    place.sum += rate;
    place.steps += 1;
  });
  return places.map(({ sum, steps }) => (steps === 0 ? null : sum / steps));
}
