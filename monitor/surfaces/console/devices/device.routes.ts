/** `/sites/{id}/devices/{id}`: the requests for one device, for the data of its charts, and for another name. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type Device, labelDevice } from '#monitor/devices/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { chartJson, type Range, readRange, toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import { chartData, devicePage, type RefusedName, unitOf } from './device.page.ts';
import { readDevice, readDeviceAround, readSteps } from './read-device.ts';

const Params = Type.Object({
  ...SiteParams.properties,
  deviceId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
type Params = Static<typeof Params>;
const Query = Type.Object({
  saved: Type.Optional(Type.String()),
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
type Query = Static<typeof Query>;

const dayMs = 86_400_000;
/** Longer ranges are read in steps of a day (NET-2.2.10). */
const finestMs = 7 * dayMs;
export function registerDevice(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/devices/:deviceId',
    { schema: { params: Params, querystring: Query } },
    (request, reply) => showDevice(deps, request, reply, request.params, request.query),
  );

  app.get(
    '/sites/:siteId/devices/:deviceId/:side.json',
    {
      schema: {
        params: Type.Object({
          ...Params.properties,
          side: Type.Union([Type.Literal('wan'), Type.Literal('lan')]),
        }),
        querystring: Query,
      },
    },
    async (request) => {
      const { siteId, deviceId, side } = request.params;
      const device = await findDevice(deps, siteId, deviceId);
      const nowMs = Date.now();
      const range = deviceRange(request.query, nowMs);
      const [steps, bindings] = await Promise.all([
        readSteps(deps, device, range),
        deps.devices.listBindings(device.id),
      ]);
      const around = await readDeviceAround(deps, device, bindings, range, nowMs);
      return chartJson(unitOf(range), chartData(steps, side, around, range));
    },
  );

  app.post(
    '/sites/:siteId/devices/:deviceId/name',
    { schema: { params: Params, body: Type.Object({ name: Type.String({ maxLength: 400 }) }) } },
    async (request, reply) => {
      const { siteId, deviceId } = request.params;
      try {
        const input = { siteId, deviceId, name: request.body.name };
        if (!(await deps.devices.name(viewerOf(request).actor, input))) throw unknownDevice();
      } catch (error) {
        if (error instanceof HttpError) throw error;
        const fault = faultText(error, 'devices.invalid');
        return showDevice(deps, request, reply, request.params, {}, { fault, typed: request.body.name });
      }
      return reply.redirect(`/sites/${siteId}/devices/${deviceId}?saved=1`, 303);
    },
  );
}

function unknownDevice(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This device does not exist.' });
}

async function findDevice(deps: ConsoleDeps, siteId: number, deviceId: number): Promise<Device> {
  const site = await siteOf(deps.sites, siteId);
  const device = await deps.devices.find(site.id, deviceId);
  if (!device) throw unknownDevice();
  return device;
}

async function showDevice(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { siteId, deviceId }: Params,
  query: Query,
  refused?: RefusedName,
): Promise<FastifyReply> {
  const nowMs = Date.now();
  const site = await siteOf(deps.sites, siteId);
  const device = await findDevice(deps, siteId, deviceId);
  const range = deviceRange(query, nowMs);
  const data = await readDevice(deps, device, range, nowMs);
  const inOperations = await readOperationsLink(deps.signOn);
  const viewer = viewerOf(request);
  const content = devicePage(request, { device, range, ...data, refused, inOperations, viewer, nowMs });
  return sendConsolePage(
    request,
    reply,
    {
      title: labelDevice(device).text,
      site: { site, page: 'devices' },
      status: refused ? 422 : 200,
      ...(query.saved === undefined ? {} : { toast: toast('good', 'Name saved.') }),
    },
    content,
  );
}

/** A month is read in whole days, shorter ranges as elsewhere. */
function deviceRange(query: Query, nowMs: number): Range {
  const range = readRange(query, nowMs, '24h');
  if (range.toMs - range.fromMs <= finestMs) return range;
  return {
    ...range,
    fromMs: Math.floor(range.fromMs / dayMs) * dayMs,
    toMs: Math.ceil(range.toMs / dayMs) * dayMs,
    stepSeconds: 86_400,
  };
}
