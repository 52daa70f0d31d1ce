/** `/sites/{id}/incidents/{incident}`: the requests for one incident, and for the data of its chart. */
import { nameSensors } from '#monitor/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { timelineOf } from '../hand-off/timeline.ts';
import { classText } from '../parts/incident-text.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import { curveData, curveStepMs, curveUnit } from './curve.ts';
import { observationsOf } from './evidence.routes.ts';
import { findIncident, IncidentParams } from './find-incident.ts';
import { incidentPage } from './incident.page.ts';

const relatedShown = 50;

export function registerIncident(app: App, deps: ConsoleDeps): void {
  const { incidents } = deps;
  app.get(
    '/sites/:siteId/incidents/:incidentId',
    { schema: { params: IncidentParams } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const incident = await findIncident(incidents, site.id, request.params.incidentId);
      const { correlationId } = incident;
      const [detail, curve, actions, related] = await Promise.all([
        incidents.readDetail(incident.id),
        incidents.readCurve(incident.id, curveStepMs(incident)),
        deps.handOff.listActionsOf(incident.id),
        correlationId === null ? [] : incidents.list({ siteId: site.id, correlationId }, relatedShown),
      ]);
      const evidence = await deps.evidence.list(site.id, observationsOf(detail.views));
      const ids = [...new Set(detail.views.map(({ sensorId }) => sensorId))];
      const content = incidentPage(request, {
        ...{ incident, ...detail, evidence, curve, actions, nowMs },
        related: related.filter(({ id }) => id !== incident.id),
        sensors: await nameSensors(deps.db(), ids),
        inOperations: await readOperationsLink(deps.signOn),
        viewer: viewerOf(request),
      });
      const title = `${classText(incident)} ${incident.target.value}`;
      return sendConsolePage(request, reply, { title, site: { site, page: 'incidents' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/incidents/:incidentId/curve.json',
    { schema: { params: IncidentParams } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const incident = await findIncident(incidents, site.id, request.params.incidentId);
      const [curve, { transitions }, actions] = await Promise.all([
        incidents.readCurve(incident.id, curveStepMs(incident)),
        incidents.readDetail(incident.id),
        deps.handOff.listActionsOf(incident.id),
      ]);
      const history = { transitions, handOff: timelineOf(actions) };
      return chartJson(curveUnit(incident), curveData(incident, curve, history));
    },
  );
}
