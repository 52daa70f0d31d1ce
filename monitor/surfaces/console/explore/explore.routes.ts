import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, hasCode } from '#common/errors/index.ts';
import {
  type Answer,
  type Asking,
  courseStep,
  type Dimension,
  type Query,
  queryBox,
  rangeSecondsMax,
} from '#monitor/explorer/index.ts';
import {
  answerChart,
  chartUnit,
  completeFilters,
  completionsMax,
  exploreForm,
  filterTextMax,
} from '#service-kit/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  chartJson,
  emptyState,
  link,
  pageHeader,
  progress,
  type Range,
  rangePicker,
  readRange,
  toast,
  withQuery,
} from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { readOperationsLink } from '../parts/address-link.ts';
import { readAround } from '../parts/chart-around.ts';
import { formOf, type SitePage, sitePage } from './explore.page.ts';
import { type ExploreView, orderOf, readView } from './explore-view.ts';
import { registerSavedViews } from './saved-views.routes.ts';

const text = Type.Optional(Type.String({ maxLength: filterTextMax }));
const Querystring = Type.Object({ q: text, by: text, tables: text, saved: text, stopped: text });

export function registerExplore(app: App, deps: ConsoleDeps): void {
  const schema = { params: SiteParams, querystring: Querystring };
  const reads = createRunningReads<SitePage>(deps.clock);
  app.get('/sites/:siteId/explore', { schema }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const view = readRangedView(site.id, request, nowMs);
    const shown = await readOrSay(deps, reads, request, view);
    const page = { title: 'Explorer', site: { site, page: 'explore' } } as const;
    if ('why' in shown) {
      // A browser asks again by itself, also without JavaScript.
      if (shown.why === 'running') reply.header('refresh', '1');
      const range = readRange(request.query as Record<string, unknown>, nowMs, '24h');
      const status = shown.why === 'refused' ? 422 : 200;
      const content = unansweredPage(view, deps.explorer.dimensions, range, shown, nowMs);
      return sendConsolePage(reply, { ...page, status }, content);
    }
    const isSaved = request.query.saved !== undefined;
    return sendConsolePage(
      reply,
      { ...page, ...(isSaved && { toast: toast('good', 'Saved.') }) },
      sitePage(request, shown),
    );
  });
  registerSavedViews(app, deps);

  app.get('/sites/:siteId/explore.json', { schema }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const view = readRangedView(site.id, request, nowMs);
    const read = await orRefused(readChart(deps, request, view, nowMs));
    return chartJson(chartUnit(read.answer), answerChart(view, read.answer, read.around));
  });

  app.get(
    '/sites/:siteId/explore/complete',
    {
      schema: {
        params: SiteParams,
        querystring: Type.Object({ q: Type.String({ maxLength: filterTextMax }) }),
      },
    },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const filters = [...deps.explorer.dimensions, 'side' as const];
      return completeFilters(request.query.q, { ...queryBox, filters }, async (dimension, text) => {
        const found = await deps.explorer.complete(site.id, dimension as Dimension, text, completionsMax);
        return found.flatMap(({ value }) => value ?? []);
      });
    },
  );
}

/** What the page shows, or why it has no answer (yet). A file and a page's own refreshing wait for the whole. */
async function readOrSay(
  deps: ConsoleDeps,
  reads: RunningReads<SitePage>,
  request: FastifyRequest,
  view: ExploreView,
): Promise<SitePage | Unanswered> {
  const read = (signal: AbortSignal) => readPage(deps, request, view, Date.now(), signal);
  if (request.headers['sec-fetch-mode'] !== 'navigate' || wantedFile(request) !== null)
    return orRefused(read(new AbortController().signal));
  const person = String(viewerOf(request).operator.id);
  const key = withQuery(request.url, { stopped: undefined });
  if ((request.query as { stopped?: unknown }).stopped !== undefined) {
    reads.leave(person, key);
    return { why: 'stopped' };
  }
  try {
    const joined = await reads.join(person, key, read);
    return joined.state === 'done' ? joined.value : { why: 'running', seconds: joined.seconds };
  } catch (error) {
    if (hasCode(error, 'explorer.left')) return { why: 'stopped' };
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    return { why: 'refused', ...refusal };
  }
}

/** Refusals that the asker can do something about, by their codes. */
const refusals: Readonly<Record<string, string>> = {
  'explorer.too_many_steps': 'Too many steps',
  'facts.too_slow': 'This takes too long',
  'explorer.busy': 'Too many queries at once',
};

function refusalOf(error: unknown): { title: string; message: string } | null {
  const title = error instanceof CodedError ? refusals[error.code] : undefined;
  return title === undefined ? null : { title, message: (error as CodedError).message };
}

async function orRefused<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    throw new HttpError(422, { code: 'validation_failed', message: refusal.message });
  }
}

// What the explorer's page and its chart show, read from the features.

/** Lines of the tables beside the chart. */
const tableRows = 10;
const flowRows = 1000;
const fileRows = 1000;

const askingOf = (request: FastifyRequest, signal?: AbortSignal): Asking => ({
  asker: `operator ${viewerOf(request).operator.id}`,
  ...(signal && { signal }),
});

/** All questions of the page are asked together, so that what they have in common is read once. */
async function readPage(
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
    return cluster && vm ? [{ clusterId: Number(cluster), serverId: Number(vm) }] : [];
  });
  const named = await protection.nameServers(servers);
  return new Map(named.map(({ clusterId, serverId, name }) => [`${clusterId}/${serverId}`, name]));
}

/** What a table beside the chart asks. */
const tableQuery = ({ query, sorts }: ExploreView, dimension: Dimension, top: number): Query => ({
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

async function readChart(deps: ConsoleDeps, request: FastifyRequest, view: ExploreView, nowMs: number) {
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

// Reads that take longer than a person likes to look at nothing: the page says so and asks again, and the read goes on meanwhile.
// One that is not asked for again is left.

/** A request waits so long before it says that the read is under way. */
export const patienceMs = 1_500;
/** The page asks again after a second; who has not asked for so long has gone elsewhere. */
export const leftAfterMs = 10_000;
/** Of one person; one more leaves the oldest. */
const readsMax = 3;

type Joined<T> = { state: 'done'; value: T } | { state: 'running'; seconds: number };

type RunningReads<T> = ReturnType<typeof createRunningReads<T>>;

interface Entry<T> {
  person: string;
  value: Promise<T>;
  leaving: AbortController;
  begunMs: number;
  askedMs: number;
}

export function createRunningReads<T>(clock: Clock) {
  const entries = new Map<string, Entry<T>>();
  const nameOf = (person: string, key: string) => `${person} ${key}`;

  const drop = (name: string, entry: Entry<T>) => {
    entry.leaving.abort();
    if (entries.get(name) === entry) entries.delete(name);
  };

  const begin = (person: string, name: string, read: (signal: AbortSignal) => Promise<T>): Entry<T> => {
    const own = [...entries].filter(([, one]) => one.person === person);
    if (own.length >= readsMax) drop(...own[0]!);
    const leaving = new AbortController();
    const now = clock.monotonicMs();
    const entry = { person, value: read(leaving.signal), leaving, begunMs: now, askedMs: now };
    // Each request that joins gets its error; without one it is not needed.
    entry.value.catch(() => {});
    entries.set(name, entry);
    return entry;
  };

  const leaveUnasked = async (name: string, entry: Entry<T>) => {
    const asked = entry.askedMs;
    await clock.wait(leftAfterMs, entry.leaving.signal);
    if (entry.askedMs === asked) drop(name, entry);
  };

  return {
    /** The value of the read of this person under this key, begun if there is none. Throws what the read throws. */
    async join(person: string, key: string, read: (signal: AbortSignal) => Promise<T>): Promise<Joined<T>> {
      const name = nameOf(person, key);
      const entry = entries.get(name) ?? begin(person, name, read);
      entry.askedMs = clock.monotonicMs();
      const ended = new AbortController();
      const done = entry.value.then(
        (value): Joined<T> => ({ state: 'done', value }),
        (error) => {
          drop(name, entry);
          throw error;
        },
      );
      const tired = clock.wait(patienceMs, ended.signal).then(() => null);
      const first = await Promise.race([done, tired]).finally(() => ended.abort());
      if (first !== null) {
        drop(name, entry);
        return first;
      }
      done.catch(() => {});
      void leaveUnasked(name, entry);
      return { state: 'running', seconds: Math.round((clock.monotonicMs() - entry.begunMs) / 1000) };
    },
    /** Leaves the read, if there is one. */
    leave(person: string, key: string) {
      const name = nameOf(person, key);
      const entry = entries.get(name);
      if (entry) drop(name, entry);
    },
  };
}

// The explorer without an answer: still reading, stopped, or refused, with its filters and what to change.

type Unanswered =
  | { why: 'running'; seconds: number }
  | { why: 'stopped' }
  /** Took too long, or too many wait: the message says what to change. */
  | { why: 'refused'; title: string; message: string };

function unansweredPage(
  view: ExploreView,
  offered: readonly Dimension[],
  range: Range,
  unanswered: Unanswered,
  nowMs: number,
): Content {
  return [
    pageHeader({
      title: 'Explorer',
      state: stateOf(unanswered),
      actions: rangePicker({ url: view.url, range, nowMs }),
    }),
    exploreForm(view, formOf(offered, view, new Map())),
    bodyOf(view, unanswered),
  ];
}

function stateOf(unanswered: Unanswered) {
  switch (unanswered.why) {
    case 'running':
      return { tone: 'info', text: 'Reading. The answer appears by itself.' } as const;
    case 'stopped':
      return { tone: 'neutral', text: 'Stopped. Nothing is read.' } as const;
    case 'refused':
      return { tone: 'warn', text: 'No answer.' } as const;
  }
}

function bodyOf(view: ExploreView, unanswered: Unanswered): Content {
  switch (unanswered.why) {
    case 'running':
      return [
        progress({
          label: 'Summing the traffic of this range',
          detail: `${unanswered.seconds} s so far; it ends by itself after a few more`,
        }),
        link(withQuery(view.url, { stopped: '1' }), 'Stop and change the filters', { kind: 'button' }),
      ];
    case 'stopped':
      return emptyState({
        title: 'Stopped',
        text: 'A shorter range, or a filter by server, address or application, is answered faster. Change them above and press Show.',
      });
    case 'refused':
      return banner({ tone: 'warn', title: unanswered.title, text: unanswered.message });
  }
}
