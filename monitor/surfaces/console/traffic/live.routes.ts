/** `/sites/{id}/live`: the requests for the traffic of the last minutes, and for the data of its charts. */
import { type Static, Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { readAround } from '../parts/chart-around.ts';
import { byLiveWindows } from '../parts/chart-reasons.ts';
import { captureRoles, capturesData, type LiveRead, livePage, trafficData, windowMs } from './live.page.ts';

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
    const read = await readLive(deps, site.id, Date.now(), addressOf(request.query));
    const role = captureRoles.find((one) => one === request.query.chart);
    if (role === undefined) return chartJson('bit/s', trafficData(read));
    return chartJson('bit/s', capturesData(read, await deps.sensors.list(site.id), role));
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
): Promise<LiveRead & { problem: string | null }> {
  const toMs = Math.floor(nowMs / windowMs) * windowMs;
  const range = { fromMs: toMs - shownMs, toMs };
  const addresses = address === null ? undefined : [address];
  const [problem, around] = await Promise.all([
    deps.live.findProblem(),
    readAround(deps, { siteId, addresses }, range, nowMs, byLiveWindows),
  ]);
  const nothing = { points: [], addresses: [], captures: [], isLimited: false };
  if (problem) return { live: nothing, problem, range, around };
  const live = await deps.live.readSite(siteId, range.fromMs, nowMs, address ?? undefined);
  return { live, problem, range, around };
}
