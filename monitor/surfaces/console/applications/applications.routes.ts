/** `/sites/{id}/applications`: the requests for a site's applications, the data of their chart, and the tip of a row. */
import type { FastifyRequest } from 'fastify';
import { type ApplicationView, applicationViews } from '#monitor/applications/index.ts';
import type { ApplicationUse } from '#monitor/facts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  chartJson,
  html,
  type Range,
  readRange,
  sendPage,
} from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { pairsTip, readKey } from '../parts/application-detail.ts';
import { readAround } from '../parts/chart-around.ts';
import { hostedOf } from '../port-scans/hosted.ts';
import { findingsOf, linesOf, nameAll } from '../port-scans/port-lines.ts';
import type { PortLine } from '../port-scans/scan-tables.ts';
import { Query } from './application-table.ts';
import { applicationsPage, type Unfolded } from './applications.page.ts';
import { gapsMax } from './collection-banners.ts';

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
