/** What the explorer's page and its chart show, read from the features. */
import type { FastifyRequest } from 'fastify';
import {
  type Answer,
  type Asking,
  type Dimension,
  type Query,
  rangeSecondsMax,
} from '#monitor/explorer/index.ts';
import { type Range, readRange } from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { viewerOf } from '../guard.ts';
import { readAround } from '../parts/chart-around.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import type { ExplorePage } from './explore.page.ts';
import { type ExploreView, orderOf, readView } from './explore-view.ts';

/** Lines of the tables beside the chart. */
const tableRows = 10;
const flowRows = 200;
const fileRows = 1000;

/** Answers a query for the person who asks. */
type Ask = (query: Query) => Promise<Answer>;

const askerOf = (request: FastifyRequest) => `operator ${viewerOf(request).operator.id}`;

const askFor = (deps: ConsoleDeps, request: FastifyRequest, signal?: AbortSignal): Ask => {
  const asking: Asking = { asker: askerOf(request), ...(signal && { signal }) };
  return (query) => deps.explorer.explore(query, asking);
};

export async function readPage(
  deps: ConsoleDeps,
  request: FastifyRequest,
  view: ExploreView,
  nowMs: number,
  signal: AbortSignal,
): Promise<ExplorePage> {
  const values = request.query as Record<string, unknown>;
  const { siteId } = view;
  const ask = askFor(deps, request, signal);
  const isFile = wantedFile(request) !== null;
  const more = isFile ? { top: Math.min(fileRows, rowsLimit(request, fileRows)) } : {};
  const shown = { ...view, query: { ...view.query, ...more } };
  const tableOf = async (dimension: Dimension) => ({
    dimension,
    answer: await ask({
      ...view.query,
      by: [dimension],
      order: orderOf(view.sorts[dimension] ?? null),
      top: isFile ? fileRows : tableRows,
    }),
  });
  const [chart, tables, flows] = await Promise.all([
    readShown(deps, ask, shown, nowMs),
    Promise.all(view.tables.map(tableOf)),
    view.tab === 'flows' ? readFlows(ask, view.query) : null,
  ]);
  const saved = { views: await deps.savedViews.list(siteId), viewer: viewerOf(request) };
  const range = pickedRange(values, chart.answer, nowMs);
  const inOperations = await readOperationsLink(deps.signOn);
  return { view, saved, range, ...chart, tables, flows, inOperations, nowMs };
}

export const readChart = (deps: ConsoleDeps, request: FastifyRequest, view: ExploreView, nowMs: number) =>
  readShown(deps, askFor(deps, request), view, nowMs);

async function readShown(deps: ConsoleDeps, ask: Ask, view: ExploreView, nowMs: number) {
  const { query } = view;
  const answer = await ask(query);
  const seconds = answer.to - answer.from;
  const earlier = { from: answer.from - seconds, to: answer.from };
  const range = {
    fromMs: answer.from * 1000,
    toMs: answer.to * 1000,
    name: 'custom',
    stepSeconds: 60,
  } as const;
  // The period before of each direction is a query of its own: an answer has only both together.
  const hasSides = query.compare !== null && view.by === null && query.measure === 'bytes';
  const step = answer.stepSeconds;
  const [before, around] = await Promise.all([
    hasSides ? ask({ ...query, range: earlier, compare: null, step }) : null,
    readExploredAround(deps, query, range, nowMs),
  ]);
  return { answer, before, around };
}

/** Of the addresses that the filters name, else of the site. */
async function readExploredAround(deps: ConsoleDeps, query: Query, range: Range, nowMs: number) {
  const addresses = (await deps.explorer.listAddresses(query)) ?? undefined;
  return readAround(deps, { siteId: query.siteId, addresses }, range, nowMs);
}

async function readFlows(ask: Ask, query: Query) {
  const flowsOf = (by: readonly Dimension[]) =>
    ask({ ...query, by, top: flowRows, step: null, compare: null });
  const [left, right] = await Promise.all([
    flowsOf(['server', 'application']),
    flowsOf(['application', 'peer']),
  ]);
  return { left, right };
}

/** The view over the very minutes that other pages show in a range of this name, so that their numbers are the same. */
export function readRangedView(
  deps: Pick<ConsoleDeps, 'explorer'>,
  siteId: number,
  request: FastifyRequest,
  nowMs: number,
): ExploreView {
  const values = request.query as Record<string, unknown>;
  const view = readView(siteId, request.url, values, deps.explorer.dimensions);
  const range = readRange(values, nowMs, '24h');
  const isShared = range.name === (values.range ?? '24h') && range.error === undefined;
  const seconds = (range.toMs - range.fromMs) / 1000;
  if (!isShared || (values.range === undefined && values.from !== undefined) || seconds > rangeSecondsMax)
    return view;
  const times = { from: range.fromMs / 1000, to: range.toMs / 1000 };
  return { ...view, query: { ...view.query, range: times } };
}

/** What the picker of ranges marks: a named range, or the times that were read. */
function pickedRange(values: Readonly<Record<string, unknown>>, answer: Answer, nowMs: number): Range {
  const range = readRange(values, nowMs, '24h');
  const isNamed = values.range === undefined || values.range === range.name;
  if (isNamed && range.name !== 'custom') return range;
  const times = { fromMs: answer.from * 1000, toMs: answer.to * 1000 };
  return { name: 'custom', ...times, stepSeconds: answer.stepSeconds ?? 60 };
}
