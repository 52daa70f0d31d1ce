/** `/sites/{id}/sensors`: the request for the list of a site's sensors. */
import type { App } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { ratesOf, stateFactsOf } from './read-sensor.ts';
import { sensorsPage } from './sensors.page.ts';

const dayMs = 86_400_000;
const gapsMax = 2000;

export function registerSensors(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/sensors', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const [sensors, conditions, captures, newest, rates, gaps] = await Promise.all([
      deps.sensors.list(site.id),
      deps.sensors.listConditions(site.id),
      deps.traffic.listCaptures(site.id),
      deps.traffic.newestMinutes(),
      ratesOf(deps.live, site.id),
      deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, gapsMax),
    ]);
    const facts = await stateFactsOf(deps, site.id, rates);
    const { canChange } = viewerOf(request);
    const newestMinuteMs = newest.get(site.id);
    const known = { siteId: site.id, sensors, conditions, captures, rates, gaps, facts, nowMs };
    const content = sensorsPage(request, { ...known, newestMinuteMs, canChange });
    return sendConsolePage(request, reply, { title: 'Sensors', site: { site, page: 'sensors' } }, content);
  });
}
