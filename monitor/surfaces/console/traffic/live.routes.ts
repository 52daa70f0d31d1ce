/** `/sites/{id}/live`: the requests for the traffic of the last minutes, and for the data of its charts. */
import { type Static, Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { SiteLive } from '#monitor/live/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { captureRoles, capturesData, type LiveRange, livePage, trafficData, windowMs } from './live.page.ts';

const shownMs = 900_000;
const Query = Type.Object({
  address: Type.Optional(Type.String({ maxLength: 64 })),
  chart: Type.Optional(Type.String({ maxLength: 20 })),
});
type Query = Static<typeof Query>;

export function registerLive(app: App, deps: ConsoleDeps): void {
  const schema = { params: SiteParams, querystring: Query };
  app.get('/sites/:siteId/live', { schema }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const address = addressOf(request.query);
    const [read, sensors] = await Promise.all([
      readLive(deps, site.id, nowMs, address),
      deps.sensors.list(site.id),
    ]);
    const content = livePage(request, { siteId: site.id, address, ...read, sensors, nowMs });
    return sendConsolePage(request, reply, { title: 'Live', site: { site, page: 'live' } }, content);
  });

  app.get('/sites/:siteId/live.json', { schema }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const { live, range } = await readLive(deps, site.id, Date.now(), addressOf(request.query));
    const role = captureRoles.find((one) => one === request.query.chart);
    if (role === undefined) return chartJson('bit/s', trafficData(live, range));
    return chartJson('bit/s', capturesData(live, await deps.sensors.list(site.id), range, role));
  });
}

function addressOf(query: Query): string | null {
  return query.address ? canonicalAddress(query.address.trim()) : null;
}

/** Without an answer of the store the page shows the reason. */
async function readLive(
  deps: ConsoleDeps,
  siteId: number,
  nowMs: number,
  address: string | null,
): Promise<{ live: SiteLive; problem: string | null; range: LiveRange }> {
  const toMs = Math.floor(nowMs / windowMs) * windowMs;
  const range = { fromMs: toMs - shownMs, toMs };
  const problem = await deps.live.findProblem();
  if (problem) return { live: { points: [], addresses: [], captures: [], isLimited: false }, problem, range };
  const live = await deps.live.readSite(siteId, range.fromMs, nowMs, address ?? undefined);
  return { live, problem, range };
}
