/** `/sites/{id}/settings`: what operators may change about a site, and the request for its page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { EnrolmentToken } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Html, toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { enrolCommand } from '../parts/enrol-command.ts';
import { NodeBody, nodeMissing, readNode } from '../parts/node-fields.ts';
import { type ShownAnswer, settingsPage } from './settings.page.ts';

interface Shown extends Omit<ShownAnswer, 'token'> {
  token?: EnrolmentToken;
  toast?: Html;
}

export function registerSettings(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({ saved: Type.Optional(Type.String()) });
  app.get(
    '/sites/:siteId/settings',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const saved = request.query.saved === undefined ? {} : { toast: toast('good', 'Saved.') };
      return showSettings(deps, request, reply, site, saved);
    },
  );

  app.post(
    '/sites/:siteId/settings/name',
    { schema: { params: SiteParams, body: Type.Object({ name: Type.String({ maxLength: 200 }) }) } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const text = request.body.name;
      try {
        await deps.sites.rename(viewerOf(request).actor, site.id, text);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid', 'sites.name_taken');
        return showSettings(deps, request, reply, site, { name: { text, fault } });
      }
      return reply.redirect(`/sites/${site.id}/settings?saved=1`, 303);
    },
  );

  const Cidrs = Type.Object({ local_cidrs: Type.String({ maxLength: 16_384 }) });
  app.post(
    '/sites/:siteId/settings/local-cidrs',
    { schema: { params: SiteParams, body: Cidrs } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const text = request.body.local_cidrs;
      const cidrs = text.split(/[\s,]+/).filter((part) => part !== '');
      try {
        await deps.sites.setLocalCidrs(viewerOf(request).actor, site.id, cidrs);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid');
        return showSettings(deps, request, reply, site, { cidrs: { text, fault } });
      }
      return reply.redirect(`/sites/${site.id}/settings?saved=1`, 303);
    },
  );

  registerFullScan(app, deps);

  app.post(
    '/sites/:siteId/settings/enrolment-tokens',
    { schema: { params: SiteParams, body: Type.Optional(NodeBody) } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { actor } = viewerOf(request);
      const chosen = readNode(request.body);
      if (!chosen && (await deps.sensors.listNodes(site.id)).length > 0) {
        return showSettings(deps, request, reply, site, { node: { ...request.body, fault: nodeMissing } });
      }
      try {
        const place = { node: chosen, replaces: request.body?.replaces !== undefined };
        const token = await deps.sensors.createToken(actor, site.id, place);
        // Rendered here instead of a redirect: only this answer contains the token.
        return await showSettings(deps, request, reply, site, { token });
      } catch (error) {
        const fault = faultText(error, 'sensors.invalid', 'sensors.node_taken');
        return showSettings(deps, request, reply, site, { node: { ...request.body, fault } });
      }
    },
  );
}

function registerFullScan(app: App, deps: ConsoleDeps): void {
  const FullScan = Type.Object({
    time: Type.String({ maxLength: 20 }),
    zone: Type.String({ maxLength: 100 }),
  });
  app.post(
    '/sites/:siteId/settings/full-scan',
    { schema: { params: SiteParams, body: FullScan } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      try {
        await deps.scans.setSchedule(viewerOf(request).actor, site.id, request.body);
      } catch (error) {
        const fault = faultText(error, 'scans.invalid');
        return showSettings(deps, request, reply, site, { fullScan: { ...request.body, fault } });
      }
      return reply.redirect(`/sites/${site.id}/settings?saved=1`, 303);
    },
  );
}

async function showSettings(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  { token, toast: message, ...refused }: Shown,
): Promise<FastifyReply> {
  const clusters = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === site.id);
  const nodes = await deps.sensors.listNodes(site.id);
  const schedule = await deps.scans.readSchedule(site.id);
  const shown = {
    ...refused,
    ...(token && {
      token: {
        expiresAtMs: token.expiresAtMs,
        command: enrolCommand(deps.monitorUrl(), request, token.token),
      },
    }),
  };
  const known = { site, clusters, nodes, schedule, registryHost: deps.vendors.registryHost };
  const isRefused = (refused.cidrs ?? refused.name ?? refused.node ?? refused.fullScan) !== undefined;
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Site settings',
      site: { site, page: 'settings' },
      isNarrow: true,
      status: isRefused ? 422 : 200,
      ...(message ? { toast: message } : {}),
    },
    settingsPage({ ...known, shown, viewer: viewerOf(request) }),
  );
}
