import type { FastifyRequest } from 'fastify';
import { type ApplicationUse, type ApplicationView, applicationViews } from '#monitor/applications/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  type Content,
  chart,
  chartJson,
  html,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  sendPage,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { applicationDetail, keyText, pairsTip, readKey } from '../parts/application-detail.ts';
import { applicationTable, Query } from './application-table.ts';
import { attributionStats, collectionBanners, collectionState, gapsMax } from './collection-banners.ts';

/** With a chart of 720 points the page stays below 150 KiB. */
const rowsShown = 50;
/** Applications with their own line; the palette has eight colours. */
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
      const [notices, data, unfolded] = await Promise.all([
        deps.applications.notices(site.id, view, range.fromMs, range.toMs, use),
        readChart(deps, site.id, view, range, chartNames(use)),
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
          collectionBanners(notices),
          attributionStats(use, notices),
          applicationChart(request.url, site.id, data, use),
          applicationTable(request, site.id, use, { nowMs, rankedAtMs, unfolded }),
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
      const names = chartNames(use);
      return chartJson('bit/s', await readChart(deps, site.id, view, range, names));
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

function readView(text: string | undefined): ApplicationView {
  return text !== undefined && Object.hasOwn(applicationViews, text) ? (text as ApplicationView) : 'outbound';
}

/**
 * The default range uses the stored ranking, which is cheap (NET-8.8); other ranges, filters and files read the facts.
 */
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
  const limit = rowsLimit(request, rowsShown);
  const use = await deps.applications.list(site.id, view, range.fromMs, range.toMs, limit, name?.trim());
  return { use, rankedAtMs: null };
}

/** The details of the open row, with the devices of its keys. */
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
