/** `/sites/{id}/protection/addresses/{address}` and `…/servers/{cluster}/{vm}`: what protects an address or a server. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import type { AddressProtection, ServerKey } from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import { protectedAddressPage } from './address.page.ts';
import { Revision, refusalOf, thresholdProperties } from './form-body.ts';
import { protectedServerPage } from './server.page.ts';
import type { Refused } from './threshold-parts.ts';
import { readTexts } from './threshold-text.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const ServerParams = Type.Object({ ...SiteParams.properties, clusterId: id, vmId: id });
const Query = Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) });
/** Drills on the page of an address. */
const drillsShown = 20;

const done: Readonly<Record<string, string>> = {
  saved: 'Saved. Sensors apply it with their next plan.',
  drill: 'The drill is ordered.',
  stopped: 'The drill is stopped. Sensors end it with their next plan.',
};
const Body = Type.Object({ ...Revision, ...thresholdProperties });

export function registerProtectedAddress(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/addresses/:address';
  app.get(path, { schema: { params: Params, querystring: Query } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const found = await explain(deps, site.id, request.params.address);
    return showAddress(deps, request, reply, site, found);
  });

  app.post(path, { schema: { params: Params, body: Body } }, async (request, reply) => {
    const { siteId, address } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const found = await explain(deps, siteId, address);
    const key = { address: found.address };
    const refused = await save(deps, request, siteId, key, request.body);
    if (refused)
      return showAddress(deps, request, reply, site, await explain(deps, siteId, address), { refused });
    return reply.redirect(`${addressHrefOf(siteId, found.address)}?done=saved`, 303);
  });

  const serverPath = '/sites/:siteId/protection/servers/:clusterId/:vmId';
  app.get(serverPath, { schema: { params: ServerParams, querystring: Query } }, async (request, reply) => {
    const { siteId, clusterId, vmId } = request.params;
    return showServer(deps, request, reply, await siteOf(deps.sites, siteId), { clusterId, vmId });
  });

  app.post(serverPath, { schema: { params: ServerParams, body: Body } }, async (request, reply) => {
    const { siteId, clusterId, vmId } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const server = { clusterId, vmId };
    await findServer(deps, site, server);
    const refused = await save(deps, request, siteId, server, request.body);
    if (refused) return showServer(deps, request, reply, site, server, refused);
    return reply.redirect(`/sites/${siteId}/protection/servers/${clusterId}/${vmId}?done=saved`, 303);
  });
}

/** Saves a form; what it returns says why it was refused. */
async function save(
  deps: ConsoleDeps,
  request: FastifyRequest,
  siteId: number,
  key: ServerKey,
  body: Readonly<Record<string, unknown>>,
): Promise<Refused | undefined> {
  try {
    const { actor } = viewerOf(request);
    await deps.protection.setServerThresholds(actor, siteId, key, readTexts(body), Number(body.revision));
    return undefined;
  } catch (error) {
    return refusalOf(error, body);
  }
}

export const addressHrefOf = (siteId: number, address: string) =>
  `/sites/${siteId}/protection/addresses/${encodeURIComponent(address)}`;

/** What protects this address; a 404 for a text that is none. */
export async function explain(
  deps: ConsoleDeps,
  siteId: number,
  address: string,
): Promise<AddressProtection> {
  try {
    return await deps.protection.explainAddress(siteId, address);
  } catch (error) {
    if (!hasCode(error, 'protection.invalid')) throw error;
    throw new HttpError(404, { code: 'not_found', message: 'This is not an IP address. Use the search.' });
  }
}

export async function showAddress(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  found: AddressProtection,
  shown: { refused?: Refused; drill?: Refused } = {},
): Promise<FastifyReply> {
  const drills = await deps.protection.listDrills(site.id, found.address, drillsShown);
  return sendConsolePage(
    request,
    reply,
    {
      title: found.address,
      site: { site, page: 'protection' },
      status: (shown.refused ?? shown.drill)?.status ?? 200,
      ...savedToast(request),
    },
    protectedAddressPage(request, {
      site,
      found,
      drills,
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
      ...shown,
    }),
  );
}

function savedToast(request: FastifyRequest) {
  const text = done[(request.query as { done?: string }).done ?? ''];
  return text ? { toast: toast('good', text) } : {};
}

/** A server of the site, or one with thresholds that is gone: they can still be removed. */
async function findServer(deps: ConsoleDeps, site: Site, server: { clusterId: number; vmId: number }) {
  const { protection } = deps;
  const [mapped, [named], found, addresses] = await Promise.all([
    deps.sites.listClusters(),
    protection.nameServers([server]),
    protection.describeSite(site.id, site.localCidrs),
    protection.listAddressesOf(server),
  ]);
  const isHere = mapped.some((one) => one.siteId === site.id && one.clusterId === server.clusterId);
  const own = found.settings.servers.find(
    (one) => one.clusterId === server.clusterId && one.vmId === server.vmId,
  );
  if (!own && (!isHere || (!named && addresses.length === 0)))
    throw new HttpError(404, { code: 'not_found', message: 'This site has no such server.' });
  const thresholds = found.settings.site.thresholds;
  return { name: named?.name ?? `VM ${server.vmId}`, own: own ?? null, addresses, thresholds };
}

async function showServer(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  server: { clusterId: number; vmId: number },
  refused?: Refused,
): Promise<FastifyReply> {
  const { addresses, ...found } = await findServer(deps, site, server);
  const explained = await Promise.all(
    addresses.map((address) => deps.protection.explainAddress(site.id, address)),
  );
  return sendConsolePage(
    request,
    reply,
    {
      title: found.name,
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      ...savedToast(request),
    },
    protectedServerPage(request, {
      site,
      ...found,
      server,
      addresses: explained,
      inOperations: await readOperationsLink(deps.signOn),
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
      refused,
    }),
  );
}
