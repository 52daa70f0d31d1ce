/** `/sites/{id}/availability`: the requests for the probes of a site and for one probe, and what operators may change. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { isConfirmed, readRange } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { availabilityPage, probesDrawn, type RefusedProbe } from './availability.page.ts';
import { probePage } from './probe.page.ts';
import { readProbesAround } from './probes-around.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
const short = Type.String({ maxLength: 20 });
const AddForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  kind: short,
  target: Type.String({ maxLength: 1000 }),
  port: Type.Optional(short),
  question: Type.Optional(Type.String({ maxLength: 300 })),
  interval: short,
  timeout: short,
});
const ChangeForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  interval: short,
  timeout: short,
  enabled: Type.Optional(Type.String()),
});
const ProbeParams = Type.Object({
  ...SiteParams.properties,
  probeId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

/** Results of single sensors are read over this span at most. */
const sensorViewsMs = 86_400_000;

export function registerAvailability(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/availability',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) =>
      showAvailability(deps, request, reply, await siteOf(deps.sites, request.params.siteId)),
  );

  app.post(
    '/sites/:siteId/availability',
    { schema: { params: SiteParams, body: AddForm } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { name, kind, target, port = '', question = '', interval, timeout } = request.body;
      try {
        const id = await deps.probes.add(viewerOf(request).actor, site.id, {
          name,
          kind,
          target,
          port: port.trim() === '' ? null : numberOf(port),
          question: question.trim() === '' ? null : question,
          intervalSeconds: numberOf(interval),
          timeoutMs: numberOf(timeout),
        });
        return await reply.redirect(`/sites/${site.id}/availability/${id}`, 303);
      } catch (error) {
        const fault = faultText(error, 'probes.invalid', 'probes.too_many');
        const typed = { name, kind, target, port, question, interval, timeout };
        return showAvailability(deps, request, reply, site, { typed, fault });
      }
    },
  );

  registerProbe(app, deps);
}

function registerProbe(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/availability/:probeId',
    { schema: { params: ProbeParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showProbe(deps, request, reply, site, request.params.probeId);
    },
  );

  app.post(
    '/sites/:siteId/availability/:probeId',
    { schema: { params: ProbeParams, body: ChangeForm } },
    async (request, reply) => {
      const { siteId, probeId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const { name, interval, timeout, enabled } = request.body;
      const change = {
        name,
        intervalSeconds: numberOf(interval),
        timeoutMs: numberOf(timeout),
        isEnabled: enabled !== undefined,
      };
      try {
        if (!(await deps.probes.change(viewerOf(request).actor, siteId, probeId, change)))
          throw unknownProbe();
      } catch (error) {
        if (error instanceof HttpError) throw error;
        return showProbe(deps, request, reply, site, probeId, faultText(error, 'probes.invalid'));
      }
      return reply.redirect(`/sites/${siteId}/availability/${probeId}`, 303);
    },
  );

  app.post(
    '/sites/:siteId/availability/:probeId/delete',
    { schema: { params: ProbeParams } },
    async (request, reply) => {
      const { siteId, probeId } = request.params;
      const probe = await deps.probes.find(siteId, probeId);
      if (!probe) throw unknownProbe();
      if (!isConfirmed(request.body, probe.name)) {
        const message = `Nothing was changed: type ${probe.name} to confirm.`;
        throw new HttpError(422, { code: 'not_confirmed', message });
      }
      try {
        await deps.probes.remove(viewerOf(request).actor, siteId, probeId);
      } catch (error) {
        faultText(error);
      }
      return reply.redirect(`/sites/${siteId}/availability`, 303);
    },
  );
}

/** NaN for invalid text, so that the probe's validation reports the allowed range. */
function numberOf(text: string): number {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

function unknownProbe(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This probe does not exist.' });
}

async function showAvailability(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  refused?: RefusedProbe,
) {
  const nowMs = Date.now();
  const range = readRange(request.query as Static<typeof Query>, nowMs, '24h');
  const [probes, found] = await Promise.all([
    deps.probes.list(site.id),
    deps.probes.readAvailability(site.id, range.fromMs, range.toMs),
  ]);
  const drawn = probes.slice(0, probesDrawn);
  const histories = await Promise.all(
    drawn.map((probe) => deps.probes.readHistory(probe.id, range.fromMs, range.toMs, range.stepSeconds)),
  );
  const viewer = viewerOf(request);
  const lines = drawn.map((probe, i) => ({ probe, history: histories[i]! }));
  const around = await readProbesAround(deps, site.id, lines, range, nowMs);
  const known = { siteId: site.id, probes, found, drawn: lines, around, range };
  const content = availabilityPage(request, { ...known, refused, viewer, nowMs });
  const options = {
    title: 'Availability',
    site: { site, page: 'availability' as const },
    status: refused ? 422 : 200,
  };
  return sendConsolePage(request, reply, options, content);
}

async function showProbe(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  probeId: number,
  fault?: string,
) {
  const nowMs = Date.now();
  const range = readRange(request.query as Record<string, unknown>, nowMs, '24h');
  const probe = (await deps.probes.list(site.id)).find((one) => one.id === probeId);
  if (!probe) throw unknownProbe();
  const [found, history, views] = await Promise.all([
    deps.probes.readAvailability(site.id, range.fromMs, range.toMs),
    deps.probes.readHistory(probeId, range.fromMs, range.toMs, range.stepSeconds),
    deps.probes.listSensorViews(probeId, Math.max(range.fromMs, range.toMs - sensorViewsMs), range.toMs),
  ]);
  const known = {
    siteId: site.id,
    probe,
    found: found.find((one) => one.probeId === probeId),
    history,
    views,
    around: await readProbesAround(deps, site.id, [{ probe, history }], range, nowMs),
  };
  const content = probePage(request, { ...known, range, fault, viewer: viewerOf(request), nowMs });
  const options = {
    title: probe.name,
    site: { site, page: 'availability' as const },
    status: fault ? 422 : 200,
  };
  return sendConsolePage(request, reply, options, content);
}
