/** `/sites/{id}/protection/addresses/{address}` and `…/servers/{cluster}/{server}`: what protects an address or a server. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { Id } from '#contracts/scalars.ts';
import {
  type AddressProtection,
  type Drill,
  type Level,
  noChoices,
  resolveAbove,
  type ServerKey,
  type ServerSettings,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  code,
  definitionList,
  drawer,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, notFound, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { addressHref, readOperationsLink } from '../parts/address-link.ts';
import { drillForm, drillTable } from './drill-parts.ts';
import { protectedServerPage } from './server.page.ts';
import {
  changedText,
  inheritedBy,
  levelText,
  type Refused,
  Revision,
  readTexts,
  refusalOf,
  textsOf,
  thresholdForm,
  thresholdProperties,
  thresholdTable,
} from './threshold-parts.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const ServerParams = Type.Object({ ...SiteParams.properties, clusterId: Id, serverId: Id });
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
  app.get(path, { schema: { params: Params, querystring: DoneQuery } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const found = await explain(deps, site.id, request.params.address);
    return showAddress(deps, reply, site, found);
  });

  app.post(path, { schema: { params: Params, body: Body } }, async (request, reply) => {
    const { siteId, address } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const found = await explain(deps, siteId, address);
    const key = { address: found.address };
    const refused = await save(deps, request, siteId, key, request.body);
    if (refused) return showAddress(deps, reply, site, await explain(deps, siteId, address), { refused });
    return reply.redirect(`${addressHrefOf(siteId, found.address)}?done=saved`, 303);
  });

  const serverPath = '/sites/:siteId/protection/servers/:clusterId/:serverId';
  app.get(
    serverPath,
    { schema: { params: ServerParams, querystring: DoneQuery } },
    async (request, reply) => {
      const { siteId, clusterId, serverId } = request.params;
      return showServer(deps, reply, await siteOf(deps.sites, siteId), { clusterId, serverId });
    },
  );

  app.post(serverPath, { schema: { params: ServerParams, body: Body } }, async (request, reply) => {
    const { siteId, clusterId, serverId } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const server = { clusterId, serverId };
    await findServer(deps, site, server);
    const refused = await save(deps, request, siteId, server, request.body);
    if (refused) return showServer(deps, reply, site, server, refused);
    return reply.redirect(`/sites/${siteId}/protection/servers/${clusterId}/${serverId}?done=saved`, 303);
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
    throw notFound('This is not an IP address. Use the search.');
  }
}

export async function showAddress(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  found: AddressProtection,
  shown: { refused?: Refused; drill?: Refused } = {},
): Promise<FastifyReply> {
  const { request } = reply;
  const drills = await deps.protection.listDrills(site.id, found.address, drillsShown);
  return sendConsolePage(
    reply,
    {
      title: found.address,
      site: { site, page: 'protection' },
      status: (shown.refused ?? shown.drill)?.status ?? 200,
      done,
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

/** A server of the site, or one with thresholds that is gone: they can still be removed. */
async function findServer(deps: ConsoleDeps, site: Site, server: { clusterId: number; serverId: number }) {
  const { protection } = deps;
  const [mapped, [named], found, addresses] = await Promise.all([
    deps.sites.listClusters(),
    protection.nameServers([server]),
    protection.describeSite(site.id, site.localCidrs),
    protection.listAddressesOf(server),
  ]);
  const isHere = mapped.some((one) => one.siteId === site.id && one.clusterId === server.clusterId);
  const own = found.settings.servers.find(
    (one) => one.clusterId === server.clusterId && one.serverId === server.serverId,
  );
  if (!own && (!isHere || (!named && addresses.length === 0)))
    throw notFound('This site has no such server.');
  const thresholds = found.settings.site.thresholds;
  return { name: named?.name ?? `VM ${server.serverId}`, own: own ?? null, addresses, thresholds };
}

async function showServer(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  server: { clusterId: number; serverId: number },
  refused?: Refused,
): Promise<FastifyReply> {
  const { request } = reply;
  const { addresses, ...found } = await findServer(deps, site, server);
  const explained = await Promise.all(
    addresses.map((address) => deps.protection.explainAddress(site.id, address)),
  );
  return sendConsolePage(
    reply,
    { title: found.name, site: { site, page: 'protection' }, status: refused?.status ?? 200, done },
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

interface ProtectedAddressPage {
  site: Site;
  found: AddressProtection;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
  /** A refused drill. */
  drill?: Refused | undefined;
  drills: readonly Drill[];
}

/** What protects one address: its thresholds with the level of each, and the form of its own. */
function protectedAddressPage(request: FastifyRequest, page: ProtectedAddressPage): Content {
  const { site, found, viewer, refused } = page;
  const { address, resolved, oddities } = found;
  return [
    pageHeader({
      title: html`Protection of ${code(address, true)}`,
      state: stateOf(found),
      actions: [
        link(addressHref(site.id, { address, segment: '' }), 'Traffic', { kind: 'button' }),
        link(`/sites/${site.id}/protection/addresses/${encodeURIComponent(address)}/what-if`, 'What if', {
          kind: 'button',
        }),
        viewer.canChange && !refused && editDrawer(page),
      ],
    }),
    oddities.map((text) => banner({ tone: 'warn', title: text })),
    refused && section({ title: 'The thresholds were not saved' }, ownForm(page)),
    levelList(page),
    section(
      {
        id: 'thresholds',
        title: 'Thresholds',
        description: 'What sensors judge this address by, with the level that each value comes from.',
      },
      thresholdTable(request, resolved, (level) => levelLink(page, level)),
    ),
    drillSection(request, page),
  ];
}

function stateOf({ protectedBy, servers }: AddressProtection): { tone: Tone; text: Content } {
  const names = servers.map((one) => one.name).join(', ');
  switch (protectedBy.kind) {
    case 'target':
      return { tone: 'good', text: `Protected, as an address of ${names || 'a server'}.` };
    case 'additional':
      return { tone: 'good', text: html`Protected by the additional prefix ${code(protectedBy.cidr)}.` };
    case 'nothing':
      return {
        tone: 'warn',
        text: 'Not protected: it is no address of a server of this site, and in no additional prefix. Sensors find no attack on it.',
      };
  }
}

function drillSection(request: FastifyRequest, page: ProtectedAddressPage): Content {
  const { site, found, viewer, drill, drills, nowMs } = page;
  const path = `/sites/${site.id}/protection`;
  const { csrfToken } = viewer;
  const own = `${path}/addresses/${encodeURIComponent(found.address)}`;
  const action = `${own}/drills`;
  const start = drillForm({ action, csrfToken, refused: drill });
  const canStart = viewer.canChange && found.protectedBy.kind !== 'nothing';
  return section(
    {
      id: 'drills',
      title: 'Drills',
      description: 'Rehearsed attacks on this address.',
      actions:
        canStart && !drill
          ? drawer({ id: 'start-drill', open: 'Start a drill', title: `Drill of ${found.address}` }, start)
          : null,
    },
    [
      drill && [html`<h3>The drill was not started</h3>`, start],
      refreshing(
        { id: 'drill-list', url: own, everySeconds: 15 },
        drillTable(request, {
          path,
          drills,
          thresholds: found.thresholds,
          csrfToken: viewer.canChange ? csrfToken : null,
          nowMs,
        }),
      ),
    ],
  );
}

/** What applies, from the nearest level to the widest. */
function levelList({ site, found, nowMs }: ProtectedAddressPage): Content {
  const { applying, servers, settings } = found;
  const path = `/sites/${site.id}/protection`;
  const own = (entry: ServerSettings | null) => (entry ? changedText(entry, nowMs) : 'none of its own');
  const server = servers[0];
  return definitionList([
    { term: 'Address', value: own(applying.address) },
    {
      term: 'Server',
      value: server
        ? html`<p>${link(serverHref(site.id, server), server.name)}: ${own(applying.server)}</p>`
        : 'no server has this address now',
    },
    {
      term: 'Group',
      value: applying.group
        ? html`<p>${link(`${path}/groups/${applying.group.id}`, applying.group.name)} by ${code(applying.prefix!)}</p>`
        : 'in no group',
    },
    { term: 'Site', value: html`<p>${link(path, site.name)}: ${changedText(settings.site, nowMs)}</p>` },
    {
      term: 'Watched',
      value:
        found.epochs.length === 0
          ? 'no sensor has said so yet'
          : found.epochs.map(
              ({ sensorId, hostName, sinceMs }) =>
                html`<p>by ${link(`/sites/${site.id}/sensors/${sensorId}`, hostName)}, its protected set and thresholds unchanged since ${moment(sinceMs, nowMs)}</p>`,
            ),
    },
  ]);
}

function serverHref(siteId: number, { clusterId, serverId }: { clusterId: number; serverId: number }) {
  return `/sites/${siteId}/protection/servers/${clusterId}/${serverId}`;
}

function levelLink({ site, found }: ProtectedAddressPage, level: Level): Content {
  const path = `/sites/${site.id}/protection`;
  const { group } = found.applying;
  if (level === 'group' && group) return link(`${path}/groups/${group.id}`, group.name);
  if (level === 'server') return link(serverHref(site.id, found.servers[0]!), found.servers[0]!.name);
  if (level === 'site') return link(path, 'site');
  return level === 'address' ? 'this address' : levelText(level);
}

function editDrawer(page: ProtectedAddressPage): Html {
  const title = `Thresholds of ${page.found.address}`;
  return drawer({ id: 'edit-address', open: 'Change thresholds', title }, [
    html`<p class="hint">They stay with the address when another server gets it. Thresholds of a server follow the server: open its page to set them.</p>`,
    ownForm(page),
  ]);
}

function ownForm({ site, found, viewer, refused }: ProtectedAddressPage): Html {
  const entry = found.applying.address;
  return thresholdForm({
    action: `/sites/${site.id}/protection/addresses/${encodeURIComponent(found.address)}`,
    csrfToken: viewer.csrfToken,
    submit: 'Save thresholds',
    id: 'address',
    revision: entry?.revision ?? 0,
    texts: refused ? readTexts(refused.typed) : textsOf(entry?.thresholds ?? noChoices),
    inherited: inheritedBy(resolveAbove(found.settings, found.applying, 'address')),
    refused,
  });
}
