/** `/sites/{id}/sensors/{sensor}`: one sensor, and what operators may do to it. */
import { Type } from 'typebox';
import type { SensorState } from '#monitor/sensors/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { isConfirmed } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { NodeBody, nodeMissing, readNode } from '../parts/node-fields.ts';
import { readSensor } from './read-sensor.ts';
import { sensorPage } from './sensor.page.ts';

const SensorParams = Type.Object({
  ...SiteParams.properties,
  sensorId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

export function registerSensor(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/sensors/:sensorId',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const nowMs = Date.now();
      const { siteId, sensorId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const sensors = await deps.sensors.list(siteId);
      const sensor = pickSensor(sensors, sensorId);
      const data = await readSensor(deps, sensor, nowMs);
      const content = sensorPage(request, { sensor, sensors, ...data, viewer: viewerOf(request), nowMs });
      const options = { title: sensor.hostName, site: { site, page: 'sensors' as const } };
      return sendConsolePage(request, reply, options, content);
    },
  );

  registerRemoval(app, deps);
  registerNodeChoice(app, deps);
  registerRotation(app, deps);
}

function registerRemoval(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/revoke',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = await findSensor(deps, siteId, sensorId);
      if (!isConfirmed(request.body, sensor.hostName)) {
        const message = `Nothing was changed: type ${sensor.hostName} to confirm.`;
        throw new HttpError(422, { code: 'not_confirmed', message });
      }
      try {
        await deps.sensors.revoke(viewerOf(request).actor, siteId, sensorId);
      } catch (error) {
        faultText(error);
      }
      return reply.redirect(`/sites/${siteId}/sensors`, 303);
    },
  );
}

function registerNodeChoice(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/node',
    { schema: { params: SensorParams, body: NodeBody } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = await findSensor(deps, siteId, sensorId);
      const refuse = (message: string) => new HttpError(422, { code: 'node_refused', message });
      const chosen = readNode(request.body);
      if (!chosen) throw refuse(nodeMissing);
      try {
        await deps.sensors.chooseNode(viewerOf(request).actor, { siteId, sensorId: sensor.id }, chosen);
      } catch (error) {
        throw refuse(faultText(error, 'sensors.invalid', 'sensors.node_taken'));
      }
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

function registerRotation(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/rotate',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const { actor } = viewerOf(request);
      if (!(await deps.sensors.requestRotation(actor, siteId, sensorId)))
        throw new HttpError(404, { code: 'not_found', message: 'This sensor does not exist.' });
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

async function findSensor(deps: ConsoleDeps, siteId: number, sensorId: number): Promise<SensorState> {
  return pickSensor(await deps.sensors.list(siteId), sensorId);
}

function pickSensor(sensors: readonly SensorState[], sensorId: number): SensorState {
  const sensor = sensors.find((known) => known.id === sensorId);
  if (!sensor) throw new HttpError(404, { code: 'not_found', message: 'This sensor does not exist.' });
  return sensor;
}
