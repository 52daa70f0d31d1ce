/** What a page of the explorer shows of an exploration: its chart and its tables, and why values are missing. */
import type { FastifyRequest } from 'fastify';
import { type Exploration, isOfApplications } from '#operations/protect/index.ts';
import type { Answer, AnsweredTable, Limit, Row } from '#service-kit/explorer/index.ts';
import { type ChartReason, formatTime } from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import { gapsOf } from './flags.ts';
import type { TrafficView } from './traffic-view.ts';

/** With so few servers it is said which of them was not observed: a sum without it would look like less traffic. */
const namedServersMax = 30;
/** Rows of a table, whose pictures are of the same lines. */
const tableRows = 10;

export interface ChartAnswers {
  /** Of everything, by nothing. */
  whole: Answer;
  /** Of the chart. */
  answer: Answer;
  /** Why times have no values, or a part of them. */
  reasons: ChartReason[];
}

/** Reads what the chart of a view draws: the largest values, also where a table has another order. */
export async function readChart(explored: Exploration, view: TrafficView): Promise<ChartAnswers> {
  const { by, top, compare } = view;
  const isOfFew = by === 'server' && explored.servers.length <= namedServersMax;
  const read = isOfFew ? namedServersMax : Math.max(top, tableRows);
  const { whole, answer, lines, arePacketsPartial } = await explored.chart(by, {
    ...{ top, read, isCompared: compare !== null },
  });
  const missing = by === 'server' && lines ? missingServers(answer, lines) : [];
  return {
    whole,
    answer: { ...answer, limits: limitsOf(explored, view, whole, arePacketsPartial) },
    reasons: [...reasonsOf(explored, view, whole), ...missing],
  };
}

function reasonsOf(
  { servers, nowMs }: Exploration,
  { range }: TrafficView,
  { timesMs, series: { minutes }, stepSeconds }: Answer,
): ChartReason[] {
  if (servers.length === 0) return [];
  const stepMs = stepSeconds! * 1000;
  const created = servers.reduce(
    (least, { createdMs }) => Math.min(least, createdMs),
    Number.POSITIVE_INFINITY,
  );
  return gapsOf({
    steps: timesMs.map((ms, index) => ({ at: new Date(ms), minutes: minutes[index]!, reason: null })),
    range: {
      ...{ fromMs: Math.floor(range.fromMs / stepMs) * stepMs, toMs: range.toMs },
      stepSeconds: stepSeconds!,
    },
    createdMs: Math.min(created, timesMs.find((_, index) => minutes[index]! > 0) ?? created),
    ...(servers.length > 1 && { before: 'before the first of these servers was created' }),
    off: [],
    nowMs,
  });
}

/** Steps in which some of the servers were not observed, or have no packets. */
function missingServers(
  { measure, timesMs, series, stepSeconds }: Answer,
  lines: readonly Row[],
): ChartReason[] {
  const what = measure === 'packets' ? 'packets' : 'observation';
  const reasons: ChartReason[] = [];
  timesMs.forEach((fromMs, index) => {
    const absent = lines.filter((line) => line.rates[index] === null);
    // Where nothing was observed of any server, its gap says so.
    if (absent.length === 0 || series.minutes[index] === 0) return;
    const who = absent.length === 1 ? absent[0]!.key[0]!.label : `${absent.length} servers`;
    const [text, toMs] = [`no ${what} of ${who}`, fromMs + stepSeconds! * 1000];
    const last = reasons.at(-1);
    if (last && last.toMs === fromMs && last.text === text) last.toMs = toMs;
    else reasons.push({ fromMs, toMs, text });
  });
  return reasons;
}

function limitsOf(
  { applicationsFromMs, isOfApplications: isFiltered }: Exploration,
  view: TrafficView,
  { total }: Answer,
  arePacketsPartial: boolean,
): Limit[] {
  const limits: Limit[] = [];
  const say = (title: string, message: string) =>
    limits.push({ code: 'partly_known', dimension: null, title, message });
  if (view.measureFault !== null) say('Shown in bits', view.measureFault);
  const isAbout = view.tab === 'flows' || isFiltered || view.shown.some(isOfApplications);
  if (applicationsFromMs !== null && isAbout)
    say(
      'Applications of the last 24 hours',
      `Applications are kept no longer: what is of them begins at ${formatTime(applicationsFromMs)}.`,
    );
  if (view.measure === 'packets' && arePacketsPartial)
    say(
      total.packets === null ? 'No packets known of this range' : 'Packets of a part of this range',
      'Some observed minutes have no count of packets: none was sent for them, or they were summed before packets were counted. Bytes are complete.',
    );
  return limits;
}

/** Reads the tables of a page, after its chart; for a file the wanted one alone, with all its rows. */
export async function readTables(
  explored: Exploration,
  view: TrafficView,
  request: FastifyRequest,
): Promise<AnsweredTable[]> {
  const wanted = wantedFile(request);
  const dimensions = wanted ? view.shown.filter((one) => one === wanted.id) : view.shown;
  return Promise.all(
    dimensions.map(async (dimension) => {
      const limit = rowsLimit(request, dimension === view.by ? Math.max(tableRows, view.top) : tableRows);
      const answer = await explored.table(dimension, {
        ...{ limit, sort: view.sorts[dimension]!, hasPercentiles: dimension === 'server' },
        hasRates: wanted === null,
      });
      return { dimension, answer };
    }),
  );
}
