/** What the explorer's page and its chart show, read from the features. */
import type { FastifyRequest } from 'fastify';
import {
  type Answer,
  type Asking,
  courseStep,
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
import type { SitePage } from './explore.page.ts';
import { type ExploreView, orderOf, readView } from './explore-view.ts';

/** Lines of the tables beside the chart. */
const tableRows = 10;
const flowRows = 1000;
const fileRows = 1000;

const askingOf = (request: FastifyRequest, signal?: AbortSignal): Asking => ({
  asker: `operator ${viewerOf(request).operator.id}`,
  ...(signal && { signal }),
});

/** All questions of the page are asked together, so that what they have in common is read once. */
export async function readPage(
  deps: ConsoleDeps,
  request: FastifyRequest,
  view: ExploreView,
  nowMs: number,
  signal: AbortSignal,
): Promise<SitePage> {
  const values = request.query as Record<string, unknown>;
  const { siteId } = view;
  const asking = askingOf(request, signal);
  const isFile = wantedFile(request) !== null;
  const more = isFile ? { top: Math.min(fileRows, rowsLimit(request, fileRows)) } : {};
  const shown = { ...view, query: { ...view.query, ...more } };
  const tableQueries = view.tables.map((one) => tableQuery(view, one, isFile ? fileRows : tableRows));
  const flowQueries = view.tab === 'flows' ? flowsBy.map((by) => flowsOf(view.query, by)) : [];
  // What the counters of addresses hold, beside a table of applications.
  const wholeQuery: Query = { ...view.query, by: [], step: null };
  const queries = [shown.query, wholeQuery, ...tableQueries, ...flowQueries];
  const answers = await deps.explorer.exploreTogether(queries, asking);
  const whole = answers[1]!;
  const tables = view.tables.map((dimension, i) => ({ dimension, answer: answers[2 + i]! }));
  const [servers, left, right] = answers.slice(2 + tables.length);
  const flows = servers && left && right ? { servers, left, right } : null;
  const chart = await readShown(deps, shown, answers[0]!, nowMs);
  const saved = { views: await deps.savedViews.list(siteId), viewer: viewerOf(request) };
  const range = pickedRange(values, chart.answer, nowMs);
  const inOperations = await readOperationsLink(deps.signOn);
  const serverNames = await readServerNames(deps, view.query);
  const { dimensions: offered } = deps.explorer;
  return { view, offered, serverNames, saved, range, ...chart, whole, tables, flows, inOperations, nowMs };
}

/** Names of the servers that filters name as `cluster/server`. */
async function readServerNames(
  { protection }: ConsoleDeps,
  { filters }: Query,
): Promise<Map<string, string>> {
  const values = filters.filter(({ dimension }) => dimension === 'server').flatMap((one) => one.values);
  const servers = values.flatMap((value) => {
    const [, cluster, vm] = /^(\d{1,15})\/(\d{1,15})$/.exec(value) ?? [];
    return cluster && vm ? [{ clusterId: Number(cluster), vmId: Number(vm) }] : [];
  });
  const named = await protection.nameServers(servers);
  return new Map(named.map(({ clusterId, vmId, name }) => [`${clusterId}/${vmId}`, name]));
}

/** What a table beside the chart asks. */
export const tableQuery = ({ query, sorts }: ExploreView, dimension: Dimension, top: number): Query => ({
  ...{ ...query, by: [dimension], order: orderOf(sorts[dimension] ?? null), step: courseStep(query), top },
});

/** Servers, from server to application, and from application to peer. */
const flowsBy: readonly (readonly Dimension[])[] = [
  ['server'],
  ['server', 'application'],
  ['application', 'peer'],
];

const flowsOf = (query: Query, by: readonly Dimension[]): Query => ({
  ...query,
  ...{ by, top: flowRows, step: null, compare: null },
});

export async function readChart(
  deps: ConsoleDeps,
  request: FastifyRequest,
  view: ExploreView,
  nowMs: number,
) {
  const asking = askingOf(request);
  return readShown(deps, view, await deps.explorer.explore(view.query, asking), nowMs);
}

/** What the chart shows beside its answer. */
async function readShown(deps: ConsoleDeps, { query }: ExploreView, answer: Answer, nowMs: number) {
  const range = {
    fromMs: answer.from * 1000,
    toMs: answer.to * 1000,
    name: 'custom',
    stepSeconds: 60,
  } as const;
  return { answer, around: await readExploredAround(deps, query, range, nowMs) };
}

/** Of the addresses that the filters name, else of the site. */
async function readExploredAround(deps: ConsoleDeps, query: Query, range: Range, nowMs: number) {
  const addresses = (await deps.explorer.listAddresses(query)) ?? undefined;
  return readAround(deps, { siteId: query.siteId, addresses }, range, nowMs);
}

/** The view over the very minutes that other pages show in a range of this name, so that their numbers are the same. */
export function readRangedView(siteId: number, request: FastifyRequest, nowMs: number): ExploreView {
  const values = request.query as Record<string, unknown>;
  const view = readView(siteId, request.url, values);
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
