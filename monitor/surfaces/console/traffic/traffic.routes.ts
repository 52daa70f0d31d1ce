/** `/sites/{id}/traffic`: the requests for a site's traffic, and for the data of its chart. */
import { Type } from 'typebox';
import type { ApplicationRow } from '#monitor/facts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson, type Range, readRange } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { readAround } from '../parts/chart-around.ts';
import { applicationsShown, chartData, trafficPage } from './traffic.page.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
const dayMs = 86_400_000;
const rowsShown = 50;

export function registerTraffic(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId', { schema: { params: SiteParams } }, async (request, reply) =>
    reply.redirect(`/sites/${request.params.siteId}/traffic`, 303),
  );

  app.get(
    '/sites/:siteId/traffic',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '1h');
      const topFromMs = Math.max(range.fromMs, range.toMs - dayMs);
      const limit = rowsLimit(request, rowsShown);
      const [chart, top, sensors, newest, use, open] = await Promise.all([
        readChart(deps, site.id, range, limit, nowMs),
        deps.traffic.listTopAddresses(site.id, topFromMs, range.toMs, limit),
        deps.sensors.list(site.id),
        deps.traffic.newestMinutes(),
        readUse(deps, site.id, range, topFromMs),
        deps.incidents.countOpen(),
      ]);
      const known = { siteId: site.id, range, topFromMs, ...chart, top, use };
      const newestMinuteMs = newest.get(site.id);
      const attacks = open.find(({ siteId }) => siteId === site.id);
      const content = trafficPage(request, { ...known, sensors, newestMinuteMs, attacks, nowMs });
      return sendConsolePage(request, reply, { title: 'Traffic', site: { site, page: 'traffic' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/traffic.json',
    { schema: { params: SiteParams, querystring: Query } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const nowMs = Date.now();
      const range = readRange(request.query, nowMs, '1h');
      const { traffic, around } = await readChart(deps, site.id, range, rowsShown, nowMs);
      return chartJson('bit/s', chartData(traffic, around, range));
    },
  );
}

/** A range of about a day that ends now is already ranked (NET-8.8). */
async function readUse(
  deps: ConsoleDeps,
  siteId: number,
  range: Range,
  fromMs: number,
): Promise<ApplicationRow[]> {
  const isDay = range.name !== 'custom' && range.toMs - fromMs >= dayMs;
  const ranking = isDay ? await deps.applications.ranking(siteId, 'all') : null;
  const use =
    ranking?.use ?? (await deps.applications.list(siteId, 'all', fromMs, range.toMs, applicationsShown));
  return use.rows.slice(0, applicationsShown);
}

async function readChart(deps: ConsoleDeps, siteId: number, range: Range, gapsMax: number, nowMs: number) {
  const [traffic, gaps, around] = await Promise.all([
    deps.traffic.readSiteTraffic(siteId, range.fromMs, range.toMs, range.stepSeconds),
    deps.traffic.listGaps(siteId, range.fromMs, range.toMs, gapsMax),
    readAround(deps, { siteId }, range, nowMs),
  ]);
  return { traffic, gaps, around };
}
