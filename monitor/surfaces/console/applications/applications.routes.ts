import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { CollectionNotices } from '#monitor/applications/index.ts';
import { type ApplicationView, applicationViews } from '#monitor/applications/index.ts';
import type { Device } from '#monitor/devices/index.ts';
import type {
  ApplicationDetail,
  ApplicationKey,
  ApplicationRow,
  ApplicationUse,
} from '#monitor/facts/index.ts';
import { localCidrsMax, type Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  attributes,
  banner,
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
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  section,
  sendPage,
  stat,
  stats,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { applicationDetail, keyText, pairsTip, readKey } from '../parts/application-detail.ts';
import { readAround } from '../parts/chart-around.ts';
import { evidenceColumn, exchangedColumns, lastSentColumn, serviceColumn } from '../parts/usage-columns.ts';
import { findingsOf, hostedOf, linesOf, nameAll } from '../port-scans/port-lines.ts';
import { type PortLine, portTable } from '../port-scans/scan-tables.ts';

/** With a chart of 720 points the page stays below 150 KiB. */
const rowsShown = 50;
/** Applications with their own line; the palette has eight colours. */
const linesMax = 5;
/** Open ports of one site that are read. */
const openPortsMax = 10_000;

export function registerApplications(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/applications',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '24h');
      const view = readView(request.query.view);
      const [{ use, rankedAtMs }, gaps] = await Promise.all([
        readUse(deps, request, site.id, view, range),
        deps.traffic.listGaps(site.id, range.fromMs, range.toMs, gapsMax),
      ]);
      const [notices, chart, around, unfolded] = await Promise.all([
        deps.applications.notices(site.id, view, range.fromMs, range.toMs, use),
        readChart(deps, site.id, view, range, chartNames(use)),
        readAround(deps, { siteId: site.id }, range, nowMs),
        readUnfolded(deps, request.query.open, site.id, view, range),
      ]);
      const data = { ...chart, ...around };
      const openPorts = view === 'inbound' ? await readOpenPorts(deps, site.id, nowMs) : null;
      const known = { siteId: site.id, range, view, use, rankedAtMs, gaps: gaps.length, notices, data };
      return sendConsolePage(
        reply,
        { title: 'Applications', site: { site, page: 'applications' } },
        applicationsPage(request, { ...known, unfolded, openPorts, nowMs }),
      );
    },
  );

  app.get(
    '/sites/:siteId/applications.json',
    { schema: { params: SiteParams, querystring: Query } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const nowMs = Date.now();
      const range = readRange(request.query, nowMs, '24h');
      const view = readView(request.query.view);
      const { use } = await readUse(deps, request, site.id, view, range);
      const [chart, around] = await Promise.all([
        readChart(deps, site.id, view, range, chartNames(use)),
        readAround(deps, { siteId: site.id }, range, nowMs),
      ]);
      return chartJson('bit/s', { ...chart, ...around });
    },
  );

  // The tooltip of a row, requested on hover or keyboard focus.
  app.get(
    '/sites/:siteId/applications/connections',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, Date.now(), '24h');
      const key = readKey(request.query.open);
      const view = readView(request.query.view);
      const detail = key && (await deps.applications.detail(site.id, view, range.fromMs, range.toMs, key));
      return sendPage(reply, html`${detail ? pairsTip(detail) : 'This row does not exist.'}`);
    },
  );
}

/** Open ports of addresses with observed applications on them. */
async function readOpenPorts(deps: ConsoleDeps, siteId: number, nowMs: number): Promise<PortLine[]> {
  const ports = await deps.scans.listOpenPorts(siteId, openPortsMax);
  const [hosted, names, findings] = await Promise.all([
    hostedOf(deps, siteId, ports, nowMs),
    nameAll(deps, ports),
    findingsOf(deps, ports),
  ]);
  return linesOf(ports, hosted, names, findings).filter(({ applications }) => applications?.length);
}

function readView(text: string | undefined): ApplicationView {
  return text !== undefined && Object.hasOwn(applicationViews, text) ? (text as ApplicationView) : 'outbound';
}

/**
 * The default range uses the stored ranking, which is cheap (NET-8.8); other ranges, filters and files read the facts.
 */
async function readUse(
  deps: ConsoleDeps,
  request: FastifyRequest,
  siteId: number,
  view: ApplicationView,
  range: Range,
): Promise<{ use: ApplicationUse; rankedAtMs: number | null }> {
  const { name } = request.query as Query;
  if (range.name === '24h' && !name && !wantedFile(request)) {
    const ranking = await deps.applications.ranking(siteId, view);
    if (ranking) {
      const use = { ...ranking.use, rows: ranking.use.rows.slice(0, rowsShown) };
      return { use, rankedAtMs: ranking.computedAtMs };
    }
  }
  const limit = rowsLimit(request, rowsShown);
  const use = await deps.applications.list(siteId, view, range.fromMs, range.toMs, limit, name?.trim());
  return { use, rankedAtMs: null };
}

/** The details of the open row, with the devices of its keys. */
async function readUnfolded(
  deps: ConsoleDeps,
  open: string | undefined,
  siteId: number,
  view: ApplicationView,
  range: Range,
): Promise<Unfolded | null> {
  const key = readKey(open);
  if (!key) return null;
  const detail = await deps.applications.detail(siteId, view, range.fromMs, range.toMs, key);
  const keys = detail.devices.flatMap((device) => device.deviceKey ?? []);
  const devices = keys.length > 0 ? await deps.devices.findByKeys(siteId, keys) : [];
  return { key, detail, devices };
}

/** The largest names; services with the same name share a line. */
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

/** The page stays below its bound of bytes. */
const openPortsShown = 20;

/** The open row. */
interface Unfolded {
  key: ApplicationKey;
  detail: ApplicationDetail;
  devices: readonly Device[];
}

interface ApplicationsPage {
  siteId: number;
  range: Range;
  view: ApplicationView;
  use: ApplicationUse;
  /** Null: not a stored ranking. */
  rankedAtMs: number | null;
  /** Gaps in the range. */
  gaps: number;
  notices: CollectionNotices;
  data: ChartData;
  unfolded: Unfolded | null;
  /** Open ports of the applications that servers host; null in views of other traffic. */
  openPorts: readonly PortLine[] | null;
  nowMs: number;
}

function applicationsPage(request: FastifyRequest, page: ApplicationsPage): Content {
  const { siteId, use, notices, rankedAtMs, nowMs } = page;
  const unfolded = page.unfolded && {
    key: keyText(page.unfolded.key),
    content: applicationDetail(request, siteId, page.unfolded.key, page.view, page.unfolded),
  };
  return [
    pageHeader({
      title: 'Applications',
      state: collectionState(notices, page.gaps),
      actions: rangePicker({ url: withQuery(request.url, { open: undefined }), range: page.range, nowMs }),
    }),
    tabs(
      'Views',
      (Object.keys(applicationViews) as ApplicationView[]).map((name) => ({
        label: applicationViews[name].label,
        href: withQuery(request.url, { view: name, open: undefined }),
        current: name === page.view,
      })),
    ),
    refreshing({ id: 'applications', url: request.url, everySeconds: 60 }, [
      collectionBanners(notices),
      attributionStats(use, notices),
      applicationChart(request.url, siteId, page.data, use),
      applicationTable(request, siteId, use, { nowMs, rankedAtMs, unfolded }),
      page.openPorts && openPortSection(request, siteId, page.openPorts, nowMs),
    ]),
  ];
}

/** Services that only scans know stay out of this page (NET-2.7.12). */
function openPortSection(request: FastifyRequest, siteId: number, rows: readonly PortLine[], nowMs: number) {
  return section(
    {
      id: 'open-ports',
      title: 'Open ports of these applications',
      description: html`What port scans found on ports with observed traffic of the last 24 hours. ${link(`/sites/${siteId}/port-scans`, 'All open ports')}`,
    },
    portTable(
      request,
      { id: 'open-ports', caption: 'Open ports of applications', rows, shown: openPortsShown, siteId, nowMs },
      { title: 'None', text: 'No scan found an open port that serves an observed application.' },
    ),
  );
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
    source: 'both directions, each minute from one capture; gaps stay empty',
  });
}

// `/api/v1/sites/{id}/application-settings`: a site's local prefixes, for programs with a session (NET-2.2.8).

const Settings = Type.Object(
  { local_cidrs: Type.Array(Type.String({ maxLength: 64 }), { maxItems: localCidrsMax }) },
  { additionalProperties: false },
);

export function registerApplicationSettings(app: App, deps: Pick<ConsoleDeps, 'sites'>): void {
  const path = '/api/v1/sites/:siteId/application-settings';
  app.get(path, { schema: { params: SiteParams } }, async (request) =>
    showSettings(await siteOf(deps.sites, request.params.siteId)),
  );

  app.put(path, { schema: { params: SiteParams, body: Settings } }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    try {
      const { actor } = viewerOf(request);
      const saved = await deps.sites.setLocalCidrs(actor, site.id, request.body.local_cidrs);
      return showSettings(saved ?? site);
    } catch (error) {
      const message = faultText(error, 'sites.invalid');
      throw new HttpError(422, { code: 'validation_failed', reason: 'invalid_local_cidrs', message });
    }
  });
}

function showSettings(site: Site): Static<typeof Settings> & { site_id: number } {
  return { site_id: site.id, local_cidrs: site.localCidrs };
}

// Banners and figures beside a list of applications: losses, gaps and attribution (NET-2.2.6).

/** Above this number gaps are not counted. */
const gapsMax = 100;

function collectionState(notices: CollectionNotices, gaps: number) {
  if (notices.packetCoverage === null)
    return { tone: 'neutral', text: 'No data was collected in this range.' } as const;
  if (notices.isPartial)
    return { tone: 'warn', text: 'Partial: packets were lost before they could be classified.' } as const;
  if (gaps > 0) {
    const count = gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps);
    return { tone: 'warn', text: `Partial: ${count} ${gaps === 1 ? 'gap' : 'gaps'} in this range.` } as const;
  }
  return { tone: 'good', text: 'Every packet that reached a capture was counted.' } as const;
}

/** Banners about losses (NET-2.2.6). */
function collectionBanners(notices: CollectionNotices) {
  return [
    notices.parserDropped > 0 &&
      banner({
        tone: 'warn',
        title: `${formatCount(notices.parserDropped)} packets could not be parsed`,
        text: 'This range is partial. Their bytes are missing below and are not estimated.',
      }),
    notices.kernelDropped > 0 &&
      banner({
        tone: 'warn',
        title: `${formatCount(notices.kernelDropped)} packets were dropped before the sensor saw them`,
        text: 'Their bytes are missing below and are not estimated.',
      }),
    notices.detailTruncated > 0 &&
      banner({
        tone: 'info',
        title: `${formatCount(notices.detailTruncated)} details were dropped`,
        text: 'There were more flows, names or addresses than a sensor can hold. Totals of addresses stay exact.',
      }),
  ];
}

/** Ratios of attribution (NET-2.2.6); null without bytes. */
function attributionStats(use: ApplicationUse, notices: CollectionNotices) {
  const share = (ratio: number | null) => (ratio === null ? undefined : formatPercent(ratio));
  return stats(
    stat({
      label: 'Packets seen',
      value: share(notices.packetCoverage),
      source: `of ${formatCount(notices.packets + notices.kernelDropped)} at the captures`,
      tone: notices.kernelDropped > 0 ? 'warn' : undefined,
    }),
    stat({ label: 'Named by evidence', value: share(notices.domainRatio), source: 'of these bytes' }),
    stat({ label: 'Named by port', value: share(notices.portRatio), source: 'of these bytes' }),
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

// The table of applications: a link expands a row, and a tooltip shows its connections (NET-2.2.2).

const Query = Type.Object({
  ...RangeQuery.properties,
  view: Type.Optional(Type.String()),
  /** Part of a name. */
  name: Type.Optional(Type.String({ maxLength: 300 })),
  /** The expanded row. */
  open: Type.Optional(Type.String({ maxLength: 320 })),
});
type Query = Static<typeof Query>;

function tableLabel(use: ApplicationUse, rankedAtMs: number | null, nowMs: number): string {
  const count =
    use.total > use.rows.length
      ? `The ${formatCount(use.rows.length)} largest of ${formatCount(use.total)}`
      : `${formatCount(use.total)} in all`;
  return rankedAtMs === null
    ? count
    : `${count}, ranked ${formatAge(rankedAtMs, nowMs)}, updated every 5 min`;
}

/** The rows whose name contains the text; totals stay those of the view. */
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
    card: { line: ['in', 'out', 'service'] },
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
      serviceColumn,
      evidenceColumn,
      ...exchangedColumns<ApplicationRow>((row) => `${row.vantage} only`),
      countColumn('addresses', 'Addresses', (row) => row.addresses, { field: 'local_addresses' }),
      {
        key: 'top',
        header: 'Top connection',
        cell: (row) => topConnection(request, siteId, row),
        field: 'top_connection',
        value: ({ topConnection: top }) => top && `${top.client} to ${top.server}`,
      },
      lastSentColumn(nowMs),
    ],
    fields: [
      { field: 'vantage', value: (row) => row.vantage },
      { field: 'is_attributed', value: (row) => row.isAttributed },
    ],
    pages: { label: tableLabel(use, rankedAtMs, nowMs) },
    empty: {
      title: (request.query as Query).name ? 'No application with this name' : 'No applications in this view',
      text: (request.query as Query).name
        ? 'No application in this view and range has such a name. Try the view All or a longer range.'
        : 'Applications appear one or two minutes after a sensor captures traffic of local addresses.',
    },
  });
}

/** Expands and collapses the row. A link, so that it works without scripts and has a URL. */
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

/** The busiest pair. Hover or keyboard focus shows up to five (NET-2.2.2). */
function topConnection(request: FastifyRequest, siteId: number, row: ApplicationRow) {
  const top = row.topConnection;
  if (!top) return html`<span class="unknown">not stored</span>`;
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
  }<span class="tip" role="tooltip">Expand the row for its connections.</span></span>`;
}
