/** `/sites/{id}/protection`: the requests for a site's protection settings, and what operators may change there. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { Revision, refusalOf, thresholdProperties } from './form-body.ts';
import { type ProtectionPage, protectionPage } from './protection.page.ts';
import { readTexts } from './threshold-text.ts';

type Shown = Pick<ProtectionPage, 'thresholds' | 'cidrs' | 'lookup'>;

const drillsShown = 20;

const done: Readonly<Record<string, string>> = {
  saved: 'Saved. Sensors apply it with their next plan.',
  removed: 'Group removed. Sensors apply it with their next plan.',
};

export function registerProtection(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection';
  const Query = Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) });
  app.get(path, { schema: { params: SiteParams, querystring: Query } }, async (request, reply) =>
    showProtection(deps, request, reply, await siteOf(deps.sites, request.params.siteId)),
  );

  const Lookup = Type.Object({ address: Type.String({ maxLength: 64 }) });
  app.get(
    `${path}/address`,
    { schema: { params: SiteParams, querystring: Lookup } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const address = canonicalAddress(request.query.address.trim());
      if (address)
        return reply.redirect(`/sites/${site.id}/protection/addresses/${encodeURIComponent(address)}`, 303);
      const message = 'This is not an IP address. Write one such as 192.0.2.7.';
      const lookup = { message, fields: {}, status: 422 as const, typed: request.query };
      return showProtection(deps, request, reply, site, { lookup });
    },
  );

  const Thresholds = Type.Object({ ...Revision, ...thresholdProperties });
  app.post(
    `${path}/thresholds`,
    { schema: { params: SiteParams, body: Thresholds } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { body } = request;
      try {
        const { actor } = viewerOf(request);
        const revision = Number(body.revision);
        await deps.protection.setSiteThresholds(actor, site.id, readTexts(body), revision);
      } catch (error) {
        const thresholds = refusalOf(error, body);
        return showProtection(deps, request, reply, site, { thresholds });
      }
      return reply.redirect(`/sites/${site.id}/protection?done=saved`, 303);
    },
  );

  const Cidrs = Type.Object({ ...Revision, additional_cidrs: Type.String({ maxLength: 16_384 }) });
  app.post(
    `${path}/additional-cidrs`,
    { schema: { params: SiteParams, body: Cidrs } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { body } = request;
      try {
        const { actor } = viewerOf(request);
        const prefixes = body.additional_cidrs.split(/[\s,]+/);
        await deps.protection.setAdditionalCidrs(actor, site.id, prefixes, Number(body.revision));
      } catch (error) {
        const cidrs = refusalOf(error, body);
        return showProtection(deps, request, reply, site, { cidrs });
      }
      return reply.redirect(`/sites/${site.id}/protection?done=saved#additional`, 303);
    },
  );
}

async function showProtection(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  shown: Shown = {},
): Promise<FastifyReply> {
  const [found, drills] = await Promise.all([
    deps.protection.describeSite(site.id, site.localCidrs),
    deps.protection.listDrills(site.id, null, drillsShown),
  ]);
  const keys = found.settings.servers.flatMap(({ clusterId, vmId }) =>
    clusterId === null || vmId === null ? [] : [{ clusterId, vmId }],
  );
  const named = await deps.protection.nameServers(keys);
  const names = new Map(named.map((one) => [`${one.clusterId}/${one.vmId}`, one.name]));
  const refused = shown.thresholds ?? shown.cidrs ?? shown.lookup;
  const text = done[(request.query as { done?: string }).done ?? ''];
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Protection',
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      ...(text ? { toast: toast('good', text) } : {}),
    },
    protectionPage(request, {
      site,
      found,
      names,
      drills,
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
      ...shown,
    }),
  );
}
