/** `/sites/{id}/applications`: the requests for a site's applications, the data of their chart, and the tip of a row. */
import type { FastifyRequest } from 'fastify';
import {
  type ApplicationView,
  applicationViews,
  type CollectionNotices,
} from '#monitor/applications/index.ts';
import type { Device } from '#monitor/devices/index.ts';
import type { ApplicationDetail, ApplicationKey, ApplicationUse } from '#monitor/facts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  type Content,
  chart,
  chartJson,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  section,
  sendPage,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { applicationDetail, keyText, pairsTip, readKey } from '../parts/application-detail.ts';
import { readAround } from '../parts/chart-around.ts';
import { hostedOf } from '../port-scans/hosted.ts';
import { findingsOf, linesOf, nameAll } from '../port-scans/port-lines.ts';
import { type PortLine, portTable } from '../port-scans/scan-tables.ts';
import { applicationTable, Query } from './application-table.ts';
import { attributionStats, collectionBanners, collectionState, gapsMax } from './collection-banners.ts';

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
        request,
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
