/** `/sites/{id}/explore`: the requests for the explorer, the data of its chart, and completion of filters. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import {
  type Answer,
  type Dimension,
  dimensions,
  printQueryText,
  type Query,
  rangeSecondsMax,
} from '#monitor/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { chartJson, type Range, readRange, toast } from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { readAround } from '../parts/chart-around.ts';
import { type ExplorePage, explorePage } from './explore.page.ts';
import { chartUnit, exploreChartData } from './explore-chart.ts';
import { type ExploreView, orderOf, readView } from './explore-view.ts';
import { registerSavedViews } from './saved-views.routes.ts';

const text = Type.Optional(Type.String({ maxLength: 20_000 }));
const Querystring = Type.Object({ q: text, by: text, tables: text, saved: text });
/** Lines of the tables beside the chart. */
const tableRows = 10;
const flowRows = 200;
const fileRows = 1000;
const completionsMax = 10;

export function registerExplore(app: App, deps: ConsoleDeps): void {
  const schema = { params: SiteParams, querystring: Querystring };
  app.get('/sites/:siteId/explore', { schema }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const content = explorePage(request, await readPage(deps, request, site.id, nowMs));
    const isSaved = request.query.saved !== undefined;
    const page = { title: 'Explorer', site: { site, page: 'explore' } } as const;
    return sendConsolePage(
      request,
      reply,
      { ...page, ...(isSaved && { toast: toast('good', 'Saved.') }) },
      content,
    );
  });
  registerSavedViews(app, deps);

  app.get('/sites/:siteId/explore.json', { schema }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const view = readRangedView(site.id, request, nowMs);
    const read = await readChart(deps, view, nowMs);
    return chartJson(chartUnit(read.answer), exploreChartData({ view, ...read }));
  });

  app.get(
    '/sites/:siteId/explore/complete',
    { schema: { params: SiteParams, querystring: Type.Object({ q: Type.String({ maxLength: 20_000 }) }) } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return complete(deps, site.id, request.query.q);
    },
  );
}

async function readPage(
  deps: ConsoleDeps,
  request: FastifyRequest,
  siteId: number,
  nowMs: number,
): Promise<ExplorePage> {
  const values = request.query as Record<string, unknown>;
  const view = readRangedView(siteId, request, nowMs);
  const isFile = wantedFile(request) !== null;
  const more = isFile ? { top: Math.min(fileRows, rowsLimit(request, fileRows)) } : {};
  const shown = { ...view, query: { ...view.query, ...more } };
  const tableOf = async (dimension: Dimension) => ({
    dimension,
    answer: await exploreOr422(deps, {
      ...view.query,
      by: [dimension],
      order: orderOf(view.sorts[dimension] ?? null),
      top: isFile ? fileRows : tableRows,
    }),
  });
  const [chart, tables, flows] = await Promise.all([
    readChart(deps, shown, nowMs),
    Promise.all(view.tables.map(tableOf)),
    view.tab === 'flows' ? readFlows(deps, view.query) : null,
  ]);
  const saved = { views: await deps.savedViews.list(siteId), viewer: viewerOf(request) };
  return { view, saved, range: pickedRange(values, chart.answer, nowMs), ...chart, tables, flows, nowMs };
}

async function readChart(deps: ConsoleDeps, view: ExploreView, nowMs: number) {
  const { query } = view;
  const answer = await exploreOr422(deps, query);
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
    hasSides ? exploreOr422(deps, { ...query, range: earlier, compare: null, step }) : null,
    readExploredAround(deps, query, range, nowMs),
  ]);
  return { answer, before, around };
}

/** Of the addresses that the filters name, else of the site. */
async function readExploredAround(deps: ConsoleDeps, query: Query, range: Range, nowMs: number) {
  const addresses = (await deps.explorer.listAddresses(query)) ?? undefined;
  return readAround(deps, { siteId: query.siteId, addresses }, range, nowMs);
}

async function readFlows(deps: ConsoleDeps, query: Query) {
  const flowsOf = (by: readonly Dimension[]) =>
    exploreOr422(deps, { ...query, by, top: flowRows, step: null, compare: null });
  const [left, right] = await Promise.all([
    flowsOf(['server', 'application']),
    flowsOf(['application', 'peer']),
  ]);
  return { left, right };
}

/** A step that is too short for its range is the asker's to change. */
async function exploreOr422(deps: ConsoleDeps, query: Query): Promise<Answer> {
  try {
    return await deps.explorer.explore(query);
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'explorer.too_many_steps') throw error;
    throw new HttpError(422, { code: 'validation_failed', message: error.message });
  }
}

/** The view over the very minutes that other pages show in a range of this name, so that their numbers are the same. */
function readRangedView(siteId: number, request: FastifyRequest, nowMs: number): ExploreView {
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

/** Whole texts of the box, whose last word is completed: names of dimensions, then values. */
async function complete(deps: ConsoleDeps, siteId: number, typed: string): Promise<string[]> {
  const last = /(?:^|\s)(-?)(?:(\p{L}+):)?((?:"[^"]*"?|[^\s"])*)$/u.exec(typed);
  if (!last) return [];
  const [, minus = '', name, word = ''] = last;
  const head = typed.slice(0, typed.length - (minus.length + (name ? name.length + 1 : 0) + word.length));
  if (name === undefined)
    return dimensions
      .filter((one) => one.startsWith(word.toLowerCase()))
      .map((one) => `${head}${minus}${one}:`);
  const dimension = parseDimension(name);
  if (dimension === null) return [];
  const found = await deps.explorer.complete(siteId, dimension, word.replaceAll('"', ''), completionsMax);
  return found.flatMap(({ value }) =>
    value === null ? [] : [`${head}${printQueryText([{ dimension, is: minus === '', values: [value] }])}`],
  );
}

/** A dimension or its short name, as the box takes it. */
function parseDimension(name: string): Dimension | null {
  const known = dimensions.find((one) => one === name.toLowerCase());
  return known ?? (name.toLowerCase() === 'app' ? 'application' : null);
}
