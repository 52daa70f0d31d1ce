/**
 * `/sites/{id}/applications`: what was used, by evidence, in four views (NET-2.2.1), each row with its busiest
 * connection and, unfolded, its destinations and devices.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import {
  type ApplicationRow,
  type ApplicationUse,
  type ApplicationView,
  applicationViews,
  type CollectionNotices,
  describeService,
} from '#monitor/applications/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  attributes,
  badge,
  type ChartData,
  type Content,
  chart,
  chartJson,
  code,
  field,
  form,
  formatAge,
  formatBytes,
  formatCount,
  formatPercent,
  hiddenField,
  html,
  isoTime,
  link,
  notice,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  sendPage,
  stat,
  stats,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { applicationDetail, keyText, pairsTip, readKey } from './application-detail.ts';
import { dataTable, rowsLimit, wantedFile } from './data-table.ts';
import { evidenceText } from './evidence.ts';
import { SiteParams, sendConsolePage, siteOf } from './frame.ts';
import type { ConsoleDeps } from './index.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  view: Type.Optional(Type.String()),
  /** Part of a name. */
  name: Type.Optional(Type.String({ maxLength: 300 })),
  /** The row that is unfolded. */
  open: Type.Optional(Type.String({ maxLength: 320 })),
});
type Query = Static<typeof Query>;

const rowsShown = 100;
/** Rows that a name is looked for in. */
const rowsSearched = 10_000;
const gapsMax = 100;
/** Applications with a line of their own; the palette has eight colours. */
const linesMax = 5;

export function registerApplicationsPage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/applications',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '24h');
      const view = readView(request.query.view);
      const [{ use, rankedAtMs }, gaps] = await Promise.all([
        readUse(deps, request, site, view, range),
        deps.traffic.listGaps(site.id, range.fromMs, range.toMs, gapsMax),
      ]);
      const found = narrow(use, request.query.name, rowsLimit(request, rowsShown));
      const [notices, data, unfolded] = await Promise.all([
        deps.applications.notices(site.id, view, range.fromMs, range.toMs, use),
        readChart(deps, site.id, view, range, chartNames(found)),
        readUnfolded(deps, request, site, view, range),
      ]);
      const content = [
        pageHeader({
          title: 'Applications',
          state: collectionState(notices, gaps.length),
          actions: rangePicker({ url: withQuery(request.url, { open: undefined }), range, nowMs }),
        }),
        tabs(
          'Views',
          (Object.keys(applicationViews) as ApplicationView[]).map((name) => ({
            label: applicationViews[name].label,
            href: withQuery(request.url, { view: name, open: undefined }),
            current: name === view,
          })),
        ),
        refreshing({ id: 'applications', url: request.url, everySeconds: 60 }, [
          collectionNotices(notices),
          attributionStats(use, notices),
          applicationChart(request.url, site.id, data, use),
          applicationTable(request, site.id, found, { nowMs, rankedAtMs, unfolded }),
        ]),
      ];
      return sendConsolePage(
        request,
        reply,
        { title: 'Applications', site: { site, page: 'applications' } },
        content,
      );
    },
  );

  app.get(
    '/sites/:siteId/applications.json',
    { schema: { params: SiteParams, querystring: Query } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, Date.now(), '24h');
      const view = readView(request.query.view);
      const { use } = await readUse(deps, request, site, view, range);
      const names = chartNames(narrow(use, request.query.name, rowsShown));
      return chartJson('bit/s', await readChart(deps, site.id, view, range, names));
    },
  );

  // The tip of a row, asked for when somebody points at it or reaches it by keyboard.
  app.get(
    '/sites/:siteId/applications/connections',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, Date.now(), '24h');
      const key = readKey(request.query.open);
      const view = readView(request.query.view);
      const detail = key && (await deps.applications.detail(site.id, view, range.fromMs, range.toMs, key));
      return sendPage(reply, html`${detail ? pairsTip(detail) : 'There is no such row.'}`);
    },
  );
}

function readView(text: string | undefined): ApplicationView {
  return text !== undefined && Object.hasOwn(applicationViews, text) ? (text as ApplicationView) : 'outbound';
}

/** The default range reads the stored ranking, which costs nothing (NET-8.8); others, names and files read the facts. */
async function readUse(
  deps: ConsoleDeps,
  request: FastifyRequest,
  site: Site,
  view: ApplicationView,
  range: Range,
): Promise<{ use: ApplicationUse; rankedAtMs: number | null }> {
  const { name } = request.query as Query;
  if (range.name === '24h' && !name && !wantedFile(request)) {
    const ranking = await deps.applications.ranking(site.id, view);
    if (ranking) {
      const use = { ...ranking.use, rows: ranking.use.rows.slice(0, rowsShown) };
      return { use, rankedAtMs: ranking.computedAtMs };
    }
  }
  const limit = name ? rowsSearched : rowsLimit(request, rowsShown);
  const use = await deps.applications.list(site.id, view, range.fromMs, range.toMs, limit);
  return { use, rankedAtMs: null };
}

function tableLabel(use: ApplicationUse, rankedAtMs: number | null, nowMs: number): string {
  const count =
    use.total > use.rows.length
      ? `The ${formatCount(use.rows.length)} largest of ${formatCount(use.total)}`
      : `${formatCount(use.total)} in all`;
  return rankedAtMs === null
    ? count
    : `${count}, ranked ${formatAge(rankedAtMs, nowMs)}; done again every 5 min`;
}

/** The rows whose name holds the text; totals stay those of the view. */
function narrow(use: ApplicationUse, name: string | undefined, limit: number): ApplicationUse {
  const part = name?.trim().toLowerCase();
  if (!part) return use;
  const rows = use.rows.filter((row) => row.name.toLowerCase().includes(part));
  return { ...use, rows: rows.slice(0, limit), total: rows.length };
}

/** What the unfolded row holds, with the devices that its keys name. */
async function readUnfolded(
  deps: ConsoleDeps,
  request: FastifyRequest,
  site: Site,
  view: ApplicationView,
  range: Range,
): Promise<{ key: string; content: Content } | null> {
  const key = readKey((request.query as Query).open);
  if (!key) return null;
  const detail = await deps.applications.detail(site.id, view, range.fromMs, range.toMs, key);
  const keys = detail.devices.flatMap((device) => device.deviceKey ?? []);
  const devices = keys.length > 0 ? await deps.devices.findByKeys(site.id, keys) : [];
  return { key: keyText(key), content: applicationDetail(request, site.id, detail, devices) };
}

/** The largest names; services of one name share a line. */
function chartNames(use: ApplicationUse): string[] {
  const names = use.rows.filter((row) => row.inboundBytes !== null).map((row) => row.name);
  return [...new Set(names)].slice(0, linesMax);
}

async function readChart(
  deps: ConsoleDeps,
  siteId: number,
  view: ApplicationView,
  range: Range,
  names: readonly string[],
): Promise<ChartData> {
  const { fromMs, toMs, stepSeconds } = range;
  const [traffic, steps] = await Promise.all([
    deps.traffic.readSiteTraffic(siteId, fromMs, toMs, stepSeconds),
    deps.applications.listSteps({ siteId, view, fromMs, toMs, stepSeconds, names }),
  ]);
  const bytes = new Map(steps.map((step) => [`${step.timeMs} ${step.name ?? ''}`, step.bytes]));
  const hasRest = steps.some((step) => step.name === null);
  const line = (label: string, name: string) => ({
    label,
    values: traffic.timesMs.map((timeMs, i) => {
      const seconds = traffic.minutes[i]! * 60;
      return seconds === 0 ? null : ((bytes.get(`${timeMs} ${name}`) ?? 0) * 8) / seconds;
    }),
  });
  const series = names.map((name) => line(name, name));
  if (hasRest) series.push(line('all others', ''));
  return { timesMs: traffic.timesMs, stepMs: stepSeconds * 1000, series };
}

function applicationChart(url: string, siteId: number, data: ChartData, use: ApplicationUse) {
  if (use.rows.length === 0) return '';
  const query = withQuery(url, { open: undefined }).split('?')[1];
  return chart({
    id: 'site-applications',
    title: 'Largest applications',
    unit: 'bit/s',
    data,
    dataUrl: `/sites/${siteId}/applications.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: 'both directions together, each minute at one vantage; gaps are not filled',
  });
}

function collectionState(notices: CollectionNotices, gaps: number) {
  if (notices.packetCoverage === null)
    return { tone: 'neutral', text: 'Nothing was collected in this range.' } as const;
  if (notices.isPartial)
    return { tone: 'warn', text: 'Partial: packets were lost before they could be named.' } as const;
  if (gaps > 0) {
    const count = gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps);
    return { tone: 'warn', text: `Partial: ${count} ${gaps === 1 ? 'gap' : 'gaps'} in this range.` } as const;
  }
  return { tone: 'good', text: 'Every packet that reached a capture was counted.' } as const;
}

/** What is known to be missing (NET-2.2.6). */
function collectionNotices(notices: CollectionNotices) {
  return [
    notices.parserDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(notices.parserDropped)} packets could not be parsed`,
        text: 'This window is partial. Their bytes are in no row below and are not estimated.',
      }),
    notices.kernelDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(notices.kernelDropped)} packets were dropped before the sensor saw them`,
        text: 'Their bytes are in no row below and are not estimated.',
      }),
    notices.detailTruncated > 0 &&
      notice({
        tone: 'info',
        title: `${formatCount(notices.detailTruncated)} details were left out`,
        text: 'More flows, names or addresses came at once than a sensor keeps. Totals of addresses stay exact.',
      }),
  ];
}

/** How much of it can be told apart (NET-2.2.6); a ratio of nothing is unknown. */
function attributionStats(use: ApplicationUse, notices: CollectionNotices) {
  const share = (ratio: number | null) => (ratio === null ? undefined : formatPercent(ratio));
  return stats(
    stat({
      label: 'Packets seen',
      value: share(notices.packetCoverage),
      source: `of ${formatCount(notices.packets + notices.kernelDropped)} at the captures`,
      tone: notices.kernelDropped > 0 ? 'warn' : undefined,
    }),
    stat({ label: 'Named by evidence', value: share(notices.domainRatio), source: 'of the bytes below' }),
    stat({ label: 'Named by port', value: share(notices.portRatio), source: 'of the bytes below' }),
    stat({
      label: 'With a known device',
      value: share(notices.deviceRatio),
      source: 'of the bytes of local addresses',
    }),
    stat({
      label: 'All bytes',
      value: use.total === 0 ? undefined : formatBytes(use.bytes),
      source: `${formatCount(use.total)} applications and services`,
    }),
  );
}

function applicationTable(
  request: FastifyRequest,
  siteId: number,
  use: ApplicationUse,
  shown: { nowMs: number; rankedAtMs: number | null; unfolded: { key: string; content: Content } | null },
) {
  const { nowMs, rankedAtMs, unfolded } = shown;
  const isUnfolded = (row: ApplicationRow) => unfolded?.key === keyText(row);
  return dataTable<ApplicationRow>(request, {
    id: 'applications',
    isComplete: use.total <= use.rows.length,
    caption: 'Applications by bytes',
    rows: use.rows,
    filter: nameFilter(request, siteId),
    rowDetail: (row) => isUnfolded(row) && unfolded?.content,
    columns: [
      {
        key: 'name',
        header: 'Application',
        cell: (row) => nameCell(request, row, isUnfolded(row)),
        value: (row) => row.name,
      },
      {
        key: 'service',
        header: 'Service',
        kind: 'code',
        cell: (row) => describeService(row.protocol, row.serverPort),
        value: (row) => describeService(row.protocol, row.serverPort),
      },
      { key: 'evidence', header: 'Evidence', cell: evidenceText, value: (row) => row.evidence },
      {
        key: 'in',
        header: 'In',
        kind: 'figure',
        cell: (row) => bytesCell(row, row.inboundBytes),
        field: 'in_bytes',
        value: (row) => row.inboundBytes,
      },
      {
        key: 'out',
        header: 'Out',
        kind: 'figure',
        cell: (row) => bytesCell(row, row.outboundBytes),
        field: 'out_bytes',
        value: (row) => row.outboundBytes,
      },
      {
        key: 'addresses',
        header: 'Addresses',
        kind: 'figure',
        cell: (row) => formatCount(row.addresses),
        field: 'local_addresses',
        value: (row) => row.addresses,
      },
      {
        key: 'top',
        header: 'Top connection',
        cell: (row) => topConnection(request, siteId, row),
        field: 'top_connection',
        value: ({ topConnection: top }) => top && `${top.client} to ${top.server}`,
      },
      {
        key: 'sent',
        header: 'Last sent',
        kind: 'figure',
        cell: (row) => age(row.lastSentMs, nowMs),
        field: 'last_sent',
        value: (row) => isoTime(row.lastSentMs),
      },
    ],
    fields: [
      { field: 'vantage', value: (row) => row.vantage },
      { field: 'is_attributed', value: (row) => row.isAttributed },
    ],
    pages: { label: tableLabel(use, rankedAtMs, nowMs) },
    empty: {
      title: (request.query as Query).name ? 'No application of this name' : 'No applications in this view',
      text: (request.query as Query).name
        ? 'Nothing in this view and range has such a name. Try the view All or a longer range.'
        : 'They appear a minute or two after a sensor sees traffic of local addresses.',
    },
  });
}

/** Unfolds and folds the row: a link, so that it works without scripts, and has an address. */
function nameCell(request: FastifyRequest, row: ApplicationRow, isUnfolded: boolean) {
  const key = keyText(row);
  const id = `row-${createHash('sha256').update(key).digest('base64url').slice(0, 10)}`;
  const href = withQuery(request.url, { open: isUnfolded ? undefined : key });
  return html`<a${attributes({
    id,
    href: `${href}#${id}`,
    class: 'unfold',
    'aria-expanded': isUnfolded ? 'true' : 'false',
    'hx-get': href,
    'hx-select': '#applications',
    'hx-target': '#applications',
    'hx-swap': 'outerMorph',
  })}><span aria-hidden="true">${isUnfolded ? '▾' : '▸'}</span> ${row.isAttributed ? row.name : code(row.name)}</a>`;
}

function nameFilter(request: FastifyRequest, siteId: number): Content {
  const { name, view, range, from, to } = request.query as Query;
  const kept = Object.entries({ view, range, from, to }).flatMap(([key, value]) =>
    value === undefined ? [] : hiddenField(key, value),
  );
  return form(
    {
      action: `/sites/${siteId}/applications`,
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
      cancel: name && link(withQuery(request.url, { name: undefined, open: undefined }), 'All names'),
    },
    [kept, field({ kind: 'search', name: 'name', label: 'Name contains', value: name })],
  );
}

/** A name that only the bridge saw has no bytes of its own: the uplink's count. */
function bytesCell(row: ApplicationRow, bytes: number | null) {
  return bytes === null ? badge('neutral', `${row.vantage} only`) : formatBytes(bytes);
}

/** The busiest pair; pointing at it or reaching it by keyboard shows up to five (NET-2.2.2). */
function topConnection(request: FastifyRequest, siteId: number, row: ApplicationRow) {
  const top = row.topConnection;
  if (!top) return html`<span class="unknown">not kept</span>`;
  const { view, range, from, to } = request.query as Query;
  const url = withQuery(`/sites/${siteId}/applications/connections`, {
    view,
    range,
    from,
    to,
    open: keyText(row),
  });
  return html`<span${attributes({
    class: 'has-tip',
    tabindex: 0,
    'aria-label': `${top.client} to ${top.server}${top.pairs > 1 ? ` and ${formatCount(top.pairs - 1)} more` : ''}`,
    'hx-get': url,
    'hx-trigger': 'mouseenter once, focus once',
    'hx-target': 'find .tip',
  })}>${code(top.client)} → ${code(top.server)}${
    top.pairs > 1 && html` <span class="hint">and ${formatCount(top.pairs - 1)} more</span>`
  }<span class="tip" role="tooltip">Reading…</span></span>`;
}
