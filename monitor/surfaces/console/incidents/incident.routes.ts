/** `/sites/{id}/incidents/{incident}`: the requests for one incident, and for the data of its chart. */
import { Type } from 'typebox';
import { nameSensors } from '#monitor/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { chartJson } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { classText } from '../parts/incident-text.ts';
import { curveData, curveStepMs, curveUnit } from './curve.ts';
import { incidentPage } from './incident.page.ts';

const Params = Type.Object({
  ...SiteParams.properties,
  incidentId: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
});
const relatedShown = 50;

export function registerIncident(app: App, deps: ConsoleDeps): void {
  const { incidents } = deps;
  const find = async (siteId: number, incidentId: string) => {
    const incident = await incidents.find(siteId, incidentId);
    if (incident) return incident;
    throw new HttpError(404, { code: 'not_found', message: 'This incident does not exist.' });
  };

  app.get('/sites/:siteId/incidents/:incidentId', { schema: { params: Params } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const incident = await find(site.id, request.params.incidentId);
    const { correlationId } = incident;
    const [detail, curve, related] = await Promise.all([
      incidents.readDetail(incident.id),
      incidents.readCurve(incident.id, curveStepMs(incident)),
      correlationId === null ? [] : incidents.list({ siteId: site.id, correlationId }, relatedShown),
    ]);
    const ids = [...new Set(detail.views.map(({ sensorId }) => sensorId))];
    const content = incidentPage(request, {
      ...{ incident, ...detail, curve, nowMs },
      related: related.filter(({ id }) => id !== incident.id),
      sensors: await nameSensors(deps.db(), ids),
      viewer: viewerOf(request),
    });
    const title = `${classText(incident)} ${incident.target.value}`;
    return sendConsolePage(request, reply, { title, site: { site, page: 'incidents' } }, content);
  });

  app.get(
    '/sites/:siteId/incidents/:incidentId/curve.json',
    { schema: { params: Params } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const incident = await find(site.id, request.params.incidentId);
      const curve = await incidents.readCurve(incident.id, curveStepMs(incident));
      return chartJson(curveUnit(incident), curveData(incident, curve));
    },
  );
}
