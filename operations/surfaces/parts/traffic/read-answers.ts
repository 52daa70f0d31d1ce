/** Answers of the explorer out of an exploration: of everything, of the chart, and of each table. */
import type { FastifyRequest } from 'fastify';
import type {
  Exploration,
  ExploredCourse,
  ExploredLine,
  ExploredLines,
  RankedValue,
  Ranking,
} from '#operations/protect/index.ts';
import {
  type Amount,
  type Answer,
  type AnsweredTable,
  type Apart,
  type Limit,
  percentile95,
  type Row,
  sizeOf,
} from '#service-kit/explorer/index.ts';
import { type ChartReason, formatTime } from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import { type ExplorerPlace, isOfApplications } from './place.ts';
import { gapsOf } from './reasons.ts';
import { orderOf, type TrafficView } from './traffic-view.ts';

/** With so few servers it is said which of them was not observed: a sum without it would look like less traffic. */
const namedServersMax = 30;
/** Rows of a table, whose pictures are of the same lines. */
const tableRows = 10;

export interface ChartAnswers {
  /** Of everything, by nothing. */
  whole: Answer;
  /** Of the chart. */
  answer: Answer;
  /** Null: the chart has in and out. */
  lines: ExploredLines | null;
  /** Why times have no values, or a part of them. */
  reasons: ChartReason[];
}

const amountOf = (of: { inboundBytes: number; outboundBytes: number; packets?: number | null }): Amount => ({
  inBytes: of.inboundBytes,
  outBytes: of.outboundBytes,
  packets: of.packets ?? null,
});

/** Reads what the chart of a view draws: the largest values, also where a table has another order. */
export async function readChart(explored: Exploration, view: TrafficView): Promise<ChartAnswers> {
  const stepSeconds = explored.stepSecondsOf(view.by);
  const isCompared = view.compare !== null && stepSeconds === explored.stepSeconds;
  const [lines, course, previous, total] = await Promise.all([
    readLines(explored, view),
    explored.course(),
    isCompared ? explored.previousCourse() : null,
    explored.total(),
  ]);
  const { percentileSeconds } = total;
  const isPackets = view.measure === 'packets';
  const wholeTimes = timesOf(course, previous);
  const of = { course, previous };
  const whole: Answer = {
    ...frameOf(view, explored.stepSeconds),
    ...{ measure: view.measure, by: [], rows: [], rest: null, apart: [] },
    total: amountOf(total),
    previousTotal: total.previous,
    timesMs: wholeTimes,
    series: seriesAt(view, wholeTimes, of),
    percentile95: isPackets ? total.packetsP95 : percentile95(wholeRates(view, course)),
    ...{ percentile95In: total.inboundP95, percentile95Out: total.outboundP95, percentileSeconds },
    limits: limitsOf(explored, view, total),
  };
  const unobserved = reasonsOf(explored, view, course);
  if (lines === null) return { whole, answer: whole, lines, reasons: unobserved };
  const times = timesOf(lines, previous);
  const { rows, rest } = foldLines(
    lines.lines.map((line) => ({ ...line, rates: ratesAt(times, lines, line.rates) })),
    view.top,
  );
  const answer: Answer = {
    ...{ ...whole, by: [view.by!], stepSeconds, rows, timesMs: times },
    rest: rest && { ...nothing, groups: 0, rates: rest },
    percentile95: percentile95(wholeRates(view, course)),
    series: seriesAt(view, times, of),
  };
  const missing = view.by === 'server' ? missingServers(view, lines, stepSeconds * 1000) : [];
  return { whole, answer, lines, reasons: [...unobserved, ...missing] };
}

/** Of a line alone: what it is made of, its table says. */
const nothing = { amount: { inBytes: 0, outBytes: 0, packets: null }, share: null, previous: null };

const frameOf = ({ range }: TrafficView, stepSeconds: number) => ({
  ...{ from: range.fromMs / 1000, to: range.toMs / 1000, stepSeconds },
});

async function readLines(explored: Exploration, { by, top }: TrafficView): Promise<ExploredLines | null> {
  if (by === null) return null;
  const hasAll = by === 'server' && explored.servers.length <= namedServersMax;
  const count = hasAll ? namedServersMax : Math.max(top, tableRows);
  const ranking = await explored.rank(by, { limit: count });
  return explored.lines(ranking, { count, hasRest: true });
}

/** The largest lines, and one for the others; null: there are none. */
function foldLines(lines: readonly ExploredLine[], top: number) {
  const named = lines.filter((line) => !line.isRest);
  const others = [...named.slice(top), ...lines.filter((line) => line.isRest)];
  const rest = others[0]?.rates.map((_, index) => {
    const known = others.map((line) => line.rates[index] ?? null).filter((rate) => rate !== null);
    return known.length === 0 ? null : known.reduce((sum, rate) => sum + rate, 0);
  });
  const rows = named.slice(0, top).map(
    ({ value, label, rates }): Row => ({
      ...{ ...nothing, key: [{ value, label }], rates },
    }),
  );
  return { rows, rest: rest ?? null };
}

/** Everything together, in the unit of the view. */
function wholeRates({ measure }: TrafficView, course: ExploredCourse): (number | null)[] {
  if (measure === 'packets') return course.pps;
  return course.inboundBps.map((inbound, index) => {
    const outbound = course.outboundBps[index] ?? null;
    return inbound === null && outbound === null ? null : (inbound ?? 0) + (outbound ?? 0);
  });
}

/** Starts of steps in which something was observed, now or in the period before, unix milliseconds. */
const timesOf = (now: { times: readonly Date[] }, previous: { times: readonly Date[] } | null): number[] =>
  [...new Set([...now.times, ...(previous?.times ?? [])].map((at) => at.getTime()))].sort((a, b) => a - b);

/** The rates of other times at these. */
function ratesAt(
  times: readonly number[],
  of: { times: readonly Date[] },
  rates: readonly (number | null)[],
) {
  const byTime = new Map(rates.map((rate, index) => [of.times[index]!.getTime(), rate]));
  return times.map((ms) => byTime.get(ms) ?? null);
}

function seriesAt(
  view: TrafficView,
  times: readonly number[],
  { course, previous }: { course: ExploredCourse; previous: ExploredCourse | null },
): Answer['series'] {
  const isPackets = view.measure === 'packets';
  const before = (rates: (course: ExploredCourse) => readonly (number | null)[]) =>
    previous === null ? [] : ratesAt(times, previous, rates(previous));
  return {
    inBps: ratesAt(times, course, course.inboundBps),
    outBps: ratesAt(times, course, course.outboundBps),
    pps: isPackets ? ratesAt(times, course, course.pps) : [],
    minutes: ratesAt(times, course, course.minutes).map((minutes) => minutes ?? 0),
    previous: before((one) => wholeRates(view, one)),
    previousInBps: isPackets ? [] : before((one) => one.inboundBps),
    previousOutBps: isPackets ? [] : before((one) => one.outboundBps),
  };
}

function reasonsOf(
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

/** Steps in which some of the servers were not observed, or have no packets. */
function missingServers(
  { measure }: TrafficView,
  { times, lines }: ExploredLines,
  stepMs: number,
): ChartReason[] {
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

function limitsOf(
  explored: Exploration,
  view: TrafficView,
  { arePacketsPartial, packets }: Awaited<ReturnType<Exploration['total']>>,
): Limit[] {
  const { applicationsFromMs, isOfApplications: isFiltered } = explored;
  const isAbout = view.tab === 'flows' || isFiltered || view.shown.some(isOfApplications);
  const limit = (title: string, message: string): Limit => ({
    code: 'partly_known',
    dimension: null,
    title,
    message,
  });
  return [
    ...(view.measureFault === null ? [] : [limit('Shown in bits', view.measureFault)]),
    ...(applicationsFromMs === null || !isAbout
      ? []
      : [
          limit(
            'Applications of the last 24 hours',
            `Applications are kept no longer: what is of them begins at ${formatTime(applicationsFromMs)}.`,
          ),
        ]),
    // What is there of packets, where that is not all.
    ...(view.measure === 'bytes' || !arePacketsPartial
      ? []
      : [
          limit(
            packets === null ? 'No packets known of this range' : 'Packets of a part of this range',
            'Some observed minutes have no count of packets: none was sent for them, or they were summed before packets were counted. Bytes are complete.',
          ),
        ]),
  ];
}

/** Reads the tables of a page; for a file the wanted one alone, with all its rows. */
export async function readTables(
  explored: Exploration,
  place: ExplorerPlace,
  view: TrafficView,
  request: FastifyRequest,
  chart: Promise<ChartAnswers>,
): Promise<AnsweredTable[]> {
  const wanted = wantedFile(request);
  const dimensions = wanted ? view.shown.filter((one) => one === wanted.id) : view.shown;
  return Promise.all(
    dimensions.map(async (dimension) => {
      const limit = rowsLimit(request, dimension === view.by ? Math.max(tableRows, view.top) : tableRows);
      const ranking = await explored.rank(dimension, {
        ...{ limit, ...orderOf(view, dimension), hasPercentiles: dimension === 'server' },
      });
      const { lines: ofChart, whole } = await chart;
      const lines = wanted
        ? null
        : await readTableLines(explored, ranking, dimension === view.by ? ofChart : null);
      return { dimension, answer: tableAnswer(explored, place, view, ranking, { lines, whole }) };
    }),
  );
}

/** The pictures of a table's rows: lines of the chart where it has all of them. */
async function readTableLines(
  explored: Exploration,
  ranking: Ranking,
  ofChart: ExploredLines | null,
): Promise<ExploredLines> {
  const keyOf = (value: string | null, label: string) => JSON.stringify([value, label]);
  const known = new Map(ofChart?.lines.map((line) => [keyOf(line.value, line.label), line]));
  const found = ranking.rows.flatMap((row) => known.get(keyOf(row.value, row.label)) ?? []);
  if (ofChart !== null && found.length === ranking.rows.length) return { times: ofChart.times, lines: found };
  return explored.lines(ranking, { count: ranking.rows.length, hasRest: false });
}

function tableAnswer(
  explored: Exploration,
  place: ExplorerPlace,
  view: TrafficView,
  ranking: Ranking,
  { lines, whole }: Pick<ChartAnswers, 'lines' | 'whole'>,
): Answer {
  const { dimension, others } = ranking;
  // Packets are known of addresses: a table of applications stays one of bytes.
  const measure = isOfApplications(dimension) ? 'bytes' : view.measure;
  const beside = [
    ...(ranking.ownScans === null ? [] : [{ label: place.ownScans, amount: amountOf(ranking.ownScans) }]),
    ...(ranking.unnamed === null
      ? []
      : [{ label: 'without an application', amount: amountOf(ranking.unnamed) }]),
  ].filter(({ amount }) => amount.inBytes + amount.outBytes > 0);
  const rest = amountOf(others);
  const total = sumOf([...ranking.rows.map(amountOf), rest, ...beside.map(({ amount }) => amount)]);
  const all = sizeOf(total, measure) ?? 0;
  const shareOf = (amount: Amount) => {
    const size = sizeOf(amount, measure);
    return size === null || all === 0 ? null : size / all;
  };
  const left = { previous: null, rates: [] };
  return {
    ...frameOf(view, explored.stepSecondsOf(dimension)),
    ...{ measure, by: [dimension], total, limits: [] },
    // Known of everything, which a table of applications alone is not.
    previousTotal: sizeOf(total, 'bytes') === sizeOf(whole.total, 'bytes') ? whole.previousTotal : null,
    rows: ranking.rows.map((row, index) => rowOf(row, lines?.lines[index]?.rates ?? [])),
    rest: others.count > 0 ? { ...left, groups: others.count, amount: rest, share: shareOf(rest) } : null,
    apart: beside.map((one): Apart => ({ ...left, ...one, share: shareOf(one.amount) })),
    timesMs: lines?.times.map((at) => at.getTime()) ?? [],
    series: noSeries,
    ...{ percentile95: null, percentile95In: null, percentile95Out: null, percentileSeconds: null },
  };
}

/** A table draws its rows alone. */
const noSeries: Answer['series'] = {
  ...{ inBps: [], outBps: [], pps: [], minutes: [], previous: [], previousInBps: [], previousOutBps: [] },
};

const sumOf = (amounts: readonly Amount[]): Amount =>
  amounts.reduce(
    (sum, one) => ({
      inBytes: sum.inBytes + one.inBytes,
      outBytes: sum.outBytes + one.outBytes,
      packets: sum.packets === null ? one.packets : sum.packets + (one.packets ?? 0),
    }),
    { inBytes: 0, outBytes: 0, packets: null },
  );

const rowOf = (row: RankedValue, rates: readonly (number | null)[]): Row => ({
  key: [{ value: row.value, label: row.label }],
  ...{ amount: amountOf(row), share: row.share, previous: row.previous, rates },
  details: {
    ...{ service: row.service, serverId: row.serverId, customerId: row.tenantId },
    lastSentMs: row.lastSentAt?.getTime() ?? null,
    ...{ percentile95In: row.inboundP95, percentile95Out: row.outboundP95 },
  },
});
