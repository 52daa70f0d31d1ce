import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import { Id } from '#contracts/scalars.ts';
import type { Actor } from '#monitor/operators/index.ts';
import { findSiteOfIncident, listSitesOfAccount } from '#monitor/views/sensor-store.ts';
import type { App } from '#service-kit/http/index.ts';
import { emptyState, html, link, pageHeader, toast as toastOf } from '#service-kit/pages/index.ts';
import { registerSignOnPages, registerSignOnSettings } from '#service-kit/sign-on/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { addressHref, exploreHref } from '../parts/address-link.ts';
import { incidentHref } from '../parts/incident-text.ts';

/** `/settings/sign-on/`, `/sign-on/ask` and `/sign-on/link`. */
export function registerSignOnConsole(app: App, { operators, ...deps }: ConsoleDeps): void {
  registerSignOnSettings<Actor>(app, {
    ...{ ...deps, path: '/settings/sign-on', base: '/settings/sign-on', other: 'operations', visitorOf },
    listOperators: async () => (await operators.list()).filter(({ disabledAtMs }) => disabledAtMs === null),
    send: (_request, reply, { title, content, toast, status }) => {
      const options = toast === undefined ? {} : { toast: toastOf('good', toast) };
      return sendConsolePage(reply, { title, status, ...options }, content);
    },
  });
  registerSignOnPages<Actor>(app, { ...deps, area: 'Monitor', home: '/', visitorOf });
}

function visitorOf(request: FastifyRequest) {
  const { operator: person, actor, csrfToken, canChange } = viewerOf(request);
  return { actor, person, csrfToken, canChange };
}

// `/find/…`: the monitor's pages of what operations links to, by what both programs know. What is not found is said with its
// likely reason.

/** An address is at few sites: a private one that several use, or one in overlapping local prefixes. */
const sitesMax = 10;

export function registerFind(app: App, deps: ConsoleDeps): void {
  const ServerQuery = Type.Object({ cluster_id: Id, server_id: Id });
  app.get('/find/server', { schema: { querystring: ServerQuery } }, async (request, reply) => {
    const { cluster_id: clusterId, server_id: serverId } = request.query;
    const [clusters, named, addresses] = await Promise.all([
      deps.sites.listClusters(),
      deps.protection.nameServers([{ clusterId, serverId }]),
      deps.protection.listAddressesOf({ clusterId, serverId }),
    ]);
    const siteId = clusters.find((one) => one.clusterId === clusterId)?.siteId;
    if (!siteId)
      return notFound(
        reply,
        'The cluster of this server is not mapped to a site. An operator maps it under Operations.',
      );
    if (named.length === 0 && addresses.length === 0)
      return notFound(reply, 'This server is not in the inventory yet, or it was destroyed.');
    return reply.redirect(exploreHref(request, siteId, { server: `${clusterId}/${serverId}` }), 303);
  });

  const AddressQuery = Type.Object({ address: Type.String({ maxLength: 64 }) });
  app.get('/find/address', { schema: { querystring: AddressQuery } }, async (request, reply) => {
    const address = canonicalAddress(request.query.address);
    const found = address === null ? null : await deps.search.find(address, sitesMax);
    const at = found?.addresses.find((one) => one.endedAtMs === null) ?? found?.addresses[0];
    const siteId = at?.siteId ?? found?.localSites[0]?.siteId;
    if (address === null || siteId === undefined)
      return notFound(reply, 'No sensor has seen this address, and it is in no local prefix of a site.');
    return reply.redirect(addressHref(siteId, { address, segment: '' }), 303);
  });

  const CustomerQuery = Type.Object({ account_id: Id });
  app.get('/find/customer', { schema: { querystring: CustomerQuery } }, async (request, reply) => {
    const accountId = request.query.account_id;
    const siteIds = await listSitesOfAccount(deps.db(), accountId);
    const hrefOf = (siteId: number) => exploreHref(request, siteId, { customer: String(accountId) });
    const [first] = siteIds;
    if (first === undefined)
      return notFound(reply, 'This customer has no address in a cluster that is mapped to a site.');
    if (siteIds.length === 1) return reply.redirect(hrefOf(first), 303);
    return chooseSite(reply, siteIds, hrefOf);
  });

  const IncidentQuery = Type.Object({
    incident_id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  });
  app.get('/find/incident', { schema: { querystring: IncidentQuery } }, async (request, reply) => {
    const id = request.query.incident_id;
    const siteId = await findSiteOfIncident(deps.db(), id);
    if (siteId === null)
      return notFound(reply, 'This incident does not exist here. Incidents are kept for a limited time.');
    return reply.redirect(incidentHref({ siteId, id }), 303);
  });
}

/** A customer's servers may be at several sites, each with an explorer of its own. */
function chooseSite(
  reply: FastifyReply,
  siteIds: readonly number[],
  hrefOf: (siteId: number) => string,
): FastifyReply {
  const { request } = reply;
  const title = 'Choose a site';
  const sites = viewerOf(request).sites.filter(({ id }) => siteIds.includes(id));
  return sendConsolePage(reply, { title }, [
    pageHeader({ title, state: { tone: 'info', text: 'This customer has servers at several sites.' } }),
    html`<ul>${sites.map((site) => html`<li>${link(hrefOf(site.id), site.name)}</li>`)}</ul>`,
  ]);
}

function notFound(reply: FastifyReply, text: string): FastifyReply {
  const title = 'Not found in the monitor';
  return sendConsolePage(reply, { title, status: 404 }, [
    pageHeader({ title }),
    emptyState({
      title: 'Operations links to something that the monitor does not have',
      text,
      action: { label: 'Search', href: '/search' },
    }),
  ]);
}
