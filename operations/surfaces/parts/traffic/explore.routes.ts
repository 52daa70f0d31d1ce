/** The requests of an explorer: the page with its files, the data of its chart, completion, and views under a name. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import { type Exploration, type RankedDimension, serverNamer } from '#operations/protect/index.ts';
import type { SavedView } from '#operations/saved-views/index.ts';
import {
  type AnsweredTable,
  answerChart,
  chartUnit,
  completeFilters,
  completionsMax,
  type Dimension,
  type ExplorerBody,
  explorerPage,
  type FlowEnd,
  type FlowPicture,
  filterTextMax,
  groupOf,
  type Row,
  savedViewLinks,
  savedViewsSection,
  sizeOf,
  stepText,
  type UrlValues,
  unclassifiedPairs,
  type Value,
  viewQueryOf,
} from '#service-kit/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  chartJson,
  chosenOf,
  emptyState,
  field,
  formatBytes,
  formatCount,
  html,
  link,
  pageHeader,
  sendPage,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { sendWantedFile, wantedFile } from '#service-kit/web/index.ts';
import { type FlagSource, type Flags, readExplorerFlags } from './flags.ts';
import { type ChartAnswers, readChart, readTables } from './read-answers.ts';
import {
  type Explorer,
  type ExplorerPlace,
  type ExplorerSurface,
  type PeerLink,
  readQuestion,
  readView,
  type TrafficView,
} from './traffic-view.ts';

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));
const Querystring = Type.Object({
  ...{ q: text(filterTextMax), by: text(20), tables: text(100), saved: text(8), table: text(20) },
});
const schema = { querystring: Querystring };

/** `prefix` is where the surface hangs; its routes are below it. */
export function registerExplorer(app: App, deps: Features, place: ExplorerSurface, prefix: string): void {
  const path = place.path.slice(prefix.length);
  app.get(path, { schema }, async (request, reply) => {
    const [read, views] = await Promise.all([
      readExplorer(deps, place, request),
      deps.savedViews.list(place.whoOf(request).actor),
    ]);
    const content = trafficPage(request, { ...read, place, views });
    const file = sendWantedFile(request, reply, 'traffic');
    if (file) return file;
    const toast = chosenOf({ '1': 'Saved.', '2': 'Removed.' }, request.query.saved) ?? null;
    return sendPage(reply, place.frame(request, 'Traffic', toast, content));
  });

  app.get(`${path}chart.json`, { schema }, async (request, reply) => {
    const { view, chart, flags } = await readExplorerChart(deps, place, request);
    const { answer, reasons } = chart;
    const data = answerChart(view, answer, { reasons, flags: flags.flags });
    return reply.send(chartJson(chartUnit(answer), data));
  });

  app.get(`${path}complete`, { schema }, async (request, reply) =>
    reply.send(await completeExplorer(deps, place, request)),
  );

  registerViews(app, deps, place, path);
}

function registerViews(app: App, deps: Features, place: ExplorerSurface, path: string): void {
  const Body = Type.Object({
    name: Type.String({ maxLength: 200 }),
    query: Type.String({ maxLength: 20_000 }),
    for: Type.Optional(Type.Union([Type.Literal('me'), Type.Literal('operators')])),
  });
  app.post(`${path}views`, { schema: { body: Body } }, async (request, reply) => {
    const { name, query } = request.body;
    try {
      const view = { name, query, isShared: request.body.for === 'operators' };
      const saved = await deps.savedViews.save(place.whoOf(request).actor, view);
      return reply.redirect(withQuery(`${place.path}?${saved.query}`, { saved: '1' }), 303);
    } catch (error) {
      if (!hasCode(error, 'saved_views.invalid')) throw error;
      throw new HttpError(422, { code: 'validation_failed', message: (error as Error).message });
    }
  });

  const View = Type.Object({ viewId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
  app.post(`${path}views/:viewId/remove`, { schema: { params: View } }, async (request, reply) => {
    if (!(await deps.savedViews.remove(place.whoOf(request).actor, request.params.viewId)))
      throw new HttpError(404, { code: 'not_found', message: 'There is no such view.' });
    return reply.redirect(`${place.path}?saved=2#views`, 303);
  });
}

/** Whole texts of the filter box. */
export async function completeExplorer(
  deps: Features,
  place: ExplorerPlace,
  request: FastifyRequest,
): Promise<string[]> {
  const { explored } = await open(deps, place, request, { q: '' });
  const { q = '' } = request.query as { q?: string };
  return completeFilters(q, place.box, (dimension, typed) => listValues(explored, dimension, typed));
}

function flagSource(deps: Features, place: ExplorerPlace, request: FastifyRequest): FlagSource {
  return { history: deps.serverHistory, actor: place.whoOf(request).actor, hrefOf: place.eventHref };
}

async function open(
  deps: Features,
  place: ExplorerPlace,
  request: FastifyRequest,
  changes: UrlValues = {},
): Promise<{ explored: Exploration; view: TrafficView }> {
  const query = request.query as { table?: string };
  // Files had the words of dimensions, such as `app`.
  if (query.table !== undefined) query.table = groupOf(query.table, place.box) ?? query.table;
  const values = { ...(query as UrlValues), ...changes };
  const nowMs = deps.clock.nowMs();
  const { range, filters, measure } = readQuestion(place, values, nowMs);
  const { fromMs, toMs, stepSeconds } = range;
  const explored = await deps.protectTraffic.explore(place.whoOf(request).actor, {
    ...{ fromMs, toMs, stepSeconds, measure, filters: [...filters, ...(place.fixed ?? [])] },
  });
  const url = `${place.path}${request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : ''}`;
  const view = readView(place, url, values, { serverCount: explored.servers.length, nowMs });
  return { explored, view };
}

/** What the chart alone shows; `changes` are values in place of those of the request. */
export async function readExplorerChart(
  deps: Features,
  place: ExplorerPlace,
  request: FastifyRequest,
  changes?: UrlValues,
) {
  const { explored, view } = await open(deps, place, request, changes);
  const [chart, flags] = await Promise.all([
    readChart(explored, view),
    readExplorerFlags(flagSource(deps, place, request), explored, place, view),
  ]);
  return { view, chart, flags };
}

/** What an explorer's page shows. */
export async function readExplorer(
  deps: Features,
  place: ExplorerPlace,
  request: FastifyRequest,
): Promise<ReadExplorer> {
  const { explored, view } = await open(deps, place, request);
  const [chart, flags, tables, peerLink, flows] = await Promise.all([
    readChart(explored, view),
    readExplorerFlags(flagSource(deps, place, request), explored, place, view),
    readTables(explored, view, request),
    place.readPeerLink?.(request) ?? null,
    view.tab === 'flows' && wantedFile(request) === null ? readFlows(explored, place) : null,
  ]);
  return { place, who: place.whoOf(request), explored, view, chart, flags, tables, flows, peerLink };
}

/** Flows that are read, largest first. */
const flowsMax = 2_000;

const endOf = ({ label, value }: Value): FlowEnd => ({ key: value ?? `(${label})`, label, value });

/** Each server has its whole traffic, of which applications hold a part. */
async function readFlows(
  explored: Exploration,
  { flowColumns: columns }: ExplorerPlace,
): Promise<FlowPicture> {
  const limit = Math.max(1, explored.servers.length);
  const hasCustomers = columns[0] === 'customer';
  const [flows, servers, customers] = await Promise.all([
    explored.flows(flowsMax),
    explored.rank('server', { limit }),
    hasCustomers ? explored.rank('customer', { limit }) : null,
  ]);
  const last = columns.length - 2;
  const partOf = ({ key, amount }: Row) => ({ from: endOf(key[0]!), size: sizeOf(amount, 'bytes')! });
  const totals = servers.rows.map(partOf);
  const known = flows.map(({ server, application, bytes }) => ({
    ...{ column: last, from: endOf(server), to: endOf(application), size: bytes },
  }));
  const customerOf = new Map(customers?.rows.map((row) => [row.details!.customerId, endOf(row.key[0]!)]));
  const first = servers.rows.flatMap((row) => {
    const customer = customerOf.get(row.details!.customerId);
    const { from, size } = partOf(row);
    return customer ? [{ column: 0, from: customer, to: from, size }] : [];
  });
  return {
    ...{ columns, colourColumn: columns.length - 1, title: 'Which application on which server' },
    source:
      'unclassified: no application is known, as of most packets of an attack, port scans, or before 24 hours',
    pairs: [...first, ...known, ...unclassifiedPairs(last, totals, known)],
    measure: 'bytes',
  };
}

/** Values of which those that hold the text are offered. */
const valuesMax = 500;

async function listValues(explored: Exploration, dimension: Dimension, typed: string): Promise<string[]> {
  const values = await readValues(explored, dimension as RankedDimension);
  return [...new Set(values)].filter((value) => value.toLowerCase().includes(typed)).slice(0, completionsMax);
}

async function readValues(explored: Exploration, dimension: RankedDimension): Promise<string[]> {
  const { reached } = explored;
  const sorted = (values: string[]) => values.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  switch (dimension) {
    case 'server':
      return sorted(reached.map(serverNamer(reached)));
    case 'customer':
      return sorted(reached.map(({ tenantName }) => tenantName));
    case 'node':
      return sorted(reached.map(({ node }) => node ?? 'none'));
    case 'cluster':
      return sorted(reached.map(({ clusterName }) => clusterName));
    default: {
      const { rows } = await explored.rank(dimension, { limit: valuesMax });
      return rows.flatMap(({ key }) => key[0]!.value ?? []);
    }
  }
}

export interface ReadExplorer {
  place: ExplorerPlace;
  who: Explorer;
  explored: Exploration;
  view: TrafficView;
  chart: ChartAnswers;
  /** What happened to the servers. */
  flags: Flags;
  tables: readonly AnsweredTable[];
  /** Null: the chart is shown. */
  flows: FlowPicture | null;
  peerLink: PeerLink | null;
}

interface TrafficPage extends ReadExplorer {
  place: ExplorerSurface;
  views: readonly SavedView[];
}

/** The explorer: the traffic of everything that the reader reaches, by any dimension. */
function trafficPage(request: FastifyRequest, page: TrafficPage): Content {
  const { place, view, views, who, explored } = page;
  // Files are of the tables also where the page shows none.
  const content = explorerPage(request, {
    ...trafficBody(page),
    ...{ title: 'Traffic', range: view.range, state: stateOf(page) },
    above: savedLinks(place, view, views),
    below: savedSection(place, view, views, who),
  });
  if (countAll(explored) > 0) return content;
  return [
    pageHeader({ title: 'Traffic', state: stateOf(page) }),
    html`<div class="card">${emptyState({
      title: 'No servers yet',
      text: 'The traffic of a server appears here one or two minutes after it was deployed.',
      ...(place.deploy && { action: place.deploy }),
    })}</div>`,
    savedLinks(place, view, views),
    savedSection(place, view, views, who),
  ];
}

export function trafficBody(page: ReadExplorer): ExplorerBody {
  const { place, view, explored, chart, flags, tables, flows } = page;
  const { path, files, box, example } = place;
  const { answer, whole, reasons } = chart;
  const rangeName = view.range.name === 'custom' ? undefined : view.range.name;
  return {
    ...{ view, nowMs: explored.nowMs, answer, totals: whole, tables, flows },
    form: {
      ...{ path, completePath: `${files}complete`, box, example },
      labelOf: (dimension, value) => nameIn(explored, dimension, value),
    },
    table: {
      fields: { in: 'inbound_bytes', out: 'outbound_bytes' },
      moreOf: (row, dimension) => {
        const href = place.hrefOf(row.details!, rangeName);
        const peers = page.peerLink?.(row, dimension, explored) ?? '';
        return [href && link(href, 'Open', { kind: 'quiet', label: `Open ${row.label}` }), peers];
      },
    },
    around: { reasons, flags: flags.flags },
    chartNote: flags.note,
    chart: {
      dataUrl: view.url.replace(path, `${files}chart.json`),
      source: `${stepText(answer.stepSeconds!)}, observed at the hypervisors; gaps stay empty`,
    },
  };
}

/** The name of what is filtered by its number. */
function nameIn({ reached }: Exploration, dimension: Dimension, value: string): string {
  const id = /^(?:\d+\/)?(\d+)$/.exec(value)?.[1];
  if (id === undefined) return value;
  if (dimension === 'server') return reached.find((server) => String(server.id) === id)?.name ?? value;
  if (dimension !== 'customer') return value;
  return reached.find(({ tenantId }) => String(tenantId) === value)?.tenantName ?? value;
}

const countAll = ({ reached, hiddenCount }: Exploration): number => reached.length + hiddenCount;

function stateOf({ explored, tables, view }: TrafficPage): { tone: Tone; text: string } {
  const { servers, hiddenCount } = explored;
  const all = countAll(explored);
  if (all === 0) return { tone: 'neutral', text: 'No servers yet.' };
  const hidden =
    hiddenCount === 0 ? '' : ` ${formatCount(hiddenCount)} with protection views off not counted.`;
  const counted = `${formatCount(servers.length)} of ${formatCount(all)} servers`;
  if (servers.length === 0)
    return { tone: 'neutral', text: `None of ${formatCount(all)} servers passes the filters.${hidden}` };
  const most = mostText({ tables, view });
  return most === null
    ? { tone: 'neutral', text: `Nothing observed of ${counted}.${hidden}` }
    : { tone: 'good', text: `${most} ${counted}.${hidden}`.trim() };
}

/** `web-1 used the most: 12.0 kB in, 3.00 kB out.` of the first table; blank: it has another order; null: it has no rows. */
export function mostText({ tables, view }: Pick<ReadExplorer, 'tables' | 'view'>): string | null {
  const first = tables[0]?.answer.rows[0];
  if (tables[0] === undefined || first === undefined) return null;
  const { by, direction } = view.sorts[tables[0].dimension]!;
  if (by !== 'share' || direction === 'asc') return '';
  const { inBytes, outBytes } = first.amount;
  const packets = view.measure === 'packets' ? `${formatCount(first.amount.packets)} packets, ` : '';
  return `${first.key[0]!.label} used the most: ${packets}${formatBytes(inBytes)} in, ${formatBytes(outBytes)} out.`;
}

/** Views of the explorer under a name: links to them, and what saves and removes them. */
const hrefOf = (place: ExplorerPlace) => (query: string) =>
  query === '' ? place.path : `${place.path}?${query}`;
const queryOf = (view: TrafficView) => viewQueryOf(view.url.split('?')[1] ?? '');

/** Above the filters; the one that is shown is marked. */
const savedLinks = (place: ExplorerPlace, view: TrafficView, views: readonly SavedView[]): Content =>
  savedViewLinks(views, queryOf(view), hrefOf(place));

function savedSection(
  place: ExplorerPlace,
  view: TrafficView,
  views: readonly SavedView[],
  who: Explorer,
): Content {
  const forWhom = who.canShare ? 'for you or for all operators' : 'for you alone';
  return savedViewsSection({
    ...{ views, shown: queryOf(view), hrefOf: hrefOf(place), action: `${place.path}views` },
    ...{ canSave: who.canSave, csrfToken: who.csrfToken },
    description: `Filters, range and pictures under a name, ${forWhom}.`,
    more:
      who.canShare &&
      field({
        ...{ kind: 'select', name: 'for', id: 'view-for', label: 'For', value: 'me' },
        options: [
          { value: 'me', label: 'Me' },
          { value: 'operators', label: 'All operators' },
        ],
      }),
    noteOf: (one) => one.isShared && [' ', badge('neutral', 'all operators')],
    removalText: (one) =>
      one.isShared ? 'It goes for all operators. The traffic stays.' : 'The view goes, the traffic stays.',
  });
}
