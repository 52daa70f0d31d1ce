/** `/sites/{id}/protection`: the requests for a site's protection settings, and what operators may change there. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import { additionalCidrsMax, thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import {
  type Drill,
  type HostGroup,
  resolveSite,
  type ServerSettings,
  type SiteProtection,
  type ThresholdChoices,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  code,
  drawer,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, linkColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { drillTable } from './drill-parts.ts';
import {
  changedColumns,
  changedText,
  type Refused,
  Revision,
  readTexts,
  refusalOf,
  textsOf,
  thresholdForm,
  thresholdProperties,
  thresholdTable,
} from './threshold-parts.ts';

type Shown = Pick<ProtectionPage, 'thresholds' | 'cidrs' | 'lookup'>;

const drillsShown = 20;

const done: Readonly<Record<string, string>> = {
  saved: 'Saved. Sensors apply it with their next plan.',
  removed: 'Group removed. Sensors apply it with their next plan.',
};

export function registerProtection(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection';
  app.get(path, { schema: { params: SiteParams, querystring: DoneQuery } }, async (request, reply) =>
    showProtection(deps, reply, await siteOf(deps.sites, request.params.siteId)),
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
      return showProtection(deps, reply, site, { lookup });
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
        return showProtection(deps, reply, site, { thresholds });
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
        return showProtection(deps, reply, site, { cidrs });
      }
      return reply.redirect(`/sites/${site.id}/protection?done=saved#additional`, 303);
    },
  );
}

async function showProtection(deps: ConsoleDeps, reply: FastifyReply, site: Site, shown: Shown = {}) {
  const { request } = reply;
  const [found, drills] = await Promise.all([
    deps.protection.describeSite(site.id, site.localCidrs),
    deps.protection.listDrills(site.id, null, drillsShown),
  ]);
  const keys = found.settings.servers.flatMap(({ clusterId, serverId }) =>
    clusterId === null || serverId === null ? [] : [{ clusterId, serverId }],
  );
  const named = await deps.protection.nameServers(keys);
  const names = new Map(named.map((one) => [`${one.clusterId}/${one.serverId}`, one.name]));
  const refused = shown.thresholds ?? shown.cidrs ?? shown.lookup;
  return sendConsolePage(
    reply,
    { title: 'Protection', site: { site, page: 'protection' }, status: refused?.status ?? 200, done },
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

interface ProtectionPage {
  site: Site;
  found: SiteProtection;
  /** Names of the servers with thresholds of their own, by `cluster/vm`. */
  names: ReadonlyMap<string, string>;
  /** The newest. */
  drills: readonly Drill[];
  viewer: Viewer;
  nowMs: number;
  /** A refused form. */
  thresholds?: Refused | undefined;
  cidrs?: Refused | undefined;
  lookup?: Refused | undefined;
}

/** The page of a site's protection settings: thresholds, groups, servers with their own, additional prefixes. */
const prefixesShown = 3;

function protectionPage(request: FastifyRequest, page: ProtectionPage): Content {
  const { site, found, viewer, thresholds } = page;
  const { settings, warnings } = found;
  const resolved = resolveSite(settings.site.thresholds);
  const path = `/sites/${site.id}/protection`;
  const edit = siteForm(page, path);
  return [
    pageHeader({
      title: 'Protection',
      state: stateOf(found),
      actions: link(`${path}/hand-off`, 'Hand-off', { kind: 'button' }),
    }),
    warnings.map(({ text }) => banner({ tone: 'warn', title: text })),
    thresholds && section({ title: 'The thresholds were not saved' }, edit),
    section(
      {
        id: 'thresholds',
        title: 'Thresholds of this site',
        description: html`Rates that one address may reach. They apply where no group, server or address has its own; ${changedText(settings.site, page.nowMs)}.`,
        actions:
          viewer.canChange && !thresholds
            ? drawer(
                { id: 'edit-thresholds', open: 'Change thresholds', title: 'Thresholds of this site' },
                edit,
              )
            : null,
      },
      thresholdTable(request, resolved),
    ),
    section(
      {
        id: 'groups',
        title: 'Groups',
        description:
          'Prefixes with thresholds of their own. Where groups overlap, the longest prefix counts.',
        actions: viewer.canChange ? link(`${path}/groups/new`, 'Add a group', { kind: 'button' }) : null,
      },
      groupTable(request, page, path),
    ),
    section(
      {
        id: 'servers',
        title: 'Servers and addresses',
        description: 'Servers and single addresses with thresholds of their own.',
      },
      [lookupForm(page, path), serverTable(request, page, path)],
    ),
    cidrSection(page, path),
    section(
      { id: 'drills', title: 'Drills', description: 'Rehearsed attacks. Show an address to start one.' },
      refreshing(
        { id: 'drill-list', url: path, everySeconds: 15 },
        drillTable(request, {
          path,
          drills: page.drills,
          thresholds: null,
          csrfToken: viewer.canChange ? viewer.csrfToken : null,
          nowMs: page.nowMs,
        }),
      ),
    ),
  ];
}

function siteForm({ site, found, viewer, thresholds }: ProtectionPage, path: string): Html {
  const { thresholds: stored, revision } = found.settings.site;
  return thresholdForm({
    action: `${path}/thresholds`,
    csrfToken: viewer.csrfToken,
    submit: 'Save thresholds',
    id: `site-${site.id}`,
    revision,
    texts: thresholds ? readTexts(thresholds.typed) : textsOf(stored),
    inherited: (direction, metric) => thresholdDefaults[direction][metric],
    refused: thresholds,
  });
}

/** The way to the page of any address. */
function lookupForm({ lookup }: ProtectionPage, path: string): Html {
  return form(
    { action: `${path}/address`, method: 'get', submit: 'Show', submitKind: 'button', layout: 'inline' },
    field({
      name: 'address',
      label: 'Address',
      value: typeof lookup?.typed.address === 'string' ? lookup.typed.address : '',
      required: true,
      isCode: true,
      maxLength: 64,
      placeholder: '192.0.2.7',
      error: lookup?.message,
    }),
  );
}

function stateOf({ settings, targets, warnings }: SiteProtection): { tone: Tone; text: string } {
  const { groups, servers, site } = settings;
  const count = (n: number, one: string, many: string) => `${formatCount(n)} ${n === 1 ? one : many}`;
  const addresses = count(targets, 'address of a server', 'addresses of servers');
  const cidrs = site.additionalCidrs.length;
  const extra = cidrs > 0 ? ` and ${count(cidrs, 'additional prefix', 'additional prefixes')}` : '';
  if (targets === 0 && cidrs === 0)
    return {
      tone: 'neutral',
      text: 'Nothing is protected yet: no servers of this site are known, and there are no additional prefixes.',
    };
  const own = groups.length + servers.length;
  const settled =
    own === 0
      ? 'all with the thresholds of the site'
      : `with ${count(groups.length, 'group', 'groups')} and ${count(servers.length, 'server or address', 'servers and addresses')} of their own`;
  return { tone: warnings.length > 0 ? 'warn' : 'good', text: `${addresses}${extra} protected, ${settled}.` };
}

/** How many thresholds a level sets. */
function setCount({ inbound, outbound }: ThresholdChoices): number {
  return Object.keys(inbound).length + Object.keys(outbound).length;
}

function groupTable(request: FastifyRequest, { found, nowMs }: ProtectionPage, path: string) {
  return dataTable<HostGroup>(request, {
    id: 'groups',
    caption: 'Groups',
    card: { line: ['prefixes', 'set'] },
    rows: found.settings.groups,
    columns: [
      linkColumn('name', 'Group', (row) => [row.name, `${path}/groups/${row.id}`]),
      {
        key: 'prefixes',
        header: 'Prefixes',
        kind: 'code',
        cell: (row) => {
          const more = row.prefixes.length - prefixesShown;
          return `${row.prefixes.slice(0, prefixesShown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
        },
        value: (row) => row.prefixes.join(' '),
      },
      countColumn('set', 'Thresholds set', (row) => setCount(row.thresholds), { field: 'thresholds_set' }),
      ...changedColumns<HostGroup>(nowMs),
    ],
    empty: {
      title: 'No groups yet',
      text: 'A group gives prefixes other thresholds than the site, for example those of game servers or of a large customer.',
    },
  });
}

function serverTable(request: FastifyRequest, { found, names, nowMs }: ProtectionPage, path: string) {
  const nameOf = ({ address, clusterId, serverId }: ServerSettings) =>
    address ?? names.get(`${clusterId}/${serverId}`) ?? `VM ${serverId} of cluster ${clusterId}`;
  const hrefOf = ({ address, clusterId, serverId }: ServerSettings) =>
    address === null
      ? `${path}/servers/${clusterId}/${serverId}`
      : `${path}/addresses/${encodeURIComponent(address)}`;
  return dataTable<ServerSettings>(request, {
    id: 'servers',
    caption: 'Servers and addresses with thresholds of their own',
    card: { line: ['kind', 'set'] },
    rows: found.settings.servers,
    columns: [
      {
        key: 'subject',
        header: 'Server or address',
        cell: (row) => link(hrefOf(row), row.address === null ? nameOf(row) : code(row.address)),
        value: nameOf,
      },
      {
        key: 'kind',
        header: 'Applies to',
        cell: (row) => (row.address === null ? 'every address of the server' : 'this address'),
        value: (row) => (row.address === null ? 'server' : 'address'),
      },
      countColumn('set', 'Thresholds set', (row) => setCount(row.thresholds), { field: 'thresholds_set' }),
      ...changedColumns<ServerSettings>(nowMs),
    ],
    empty: { title: 'None yet', text: 'Show an address to give it, or its server, thresholds of its own.' },
  });
}

function cidrSection({ found, viewer, cidrs }: ProtectionPage, path: string): Content {
  const { additionalCidrs, revision } = found.settings.site;
  const description =
    'Prefixes that sensors protect beside the addresses of servers. They have nothing to do with the local prefixes of the site settings.';
  return section(
    { id: 'additional', title: 'Additional protected prefixes', description },
    viewer.canChange
      ? form(
          {
            action: `${path}/additional-cidrs`,
            csrfToken: viewer.csrfToken,
            submit: 'Save prefixes',
            error: cidrs && Object.keys(cidrs.fields).length === 0 ? cidrs.message : undefined,
          },
          [
            hiddenField('revision', revision),
            field({
              kind: 'textarea',
              name: 'additional_cidrs',
              label: 'Prefixes',
              hint: `One per line, IPv4 or IPv6, such as 192.0.2.0/24; at most ${additionalCidrsMax}. Sensors apply them with their next plan.`,
              rows: Math.max(3, Math.min(16, additionalCidrs.length + 1)),
              isCode: true,
              value:
                typeof cidrs?.typed.additional_cidrs === 'string'
                  ? cidrs.typed.additional_cidrs
                  : additionalCidrs.join('\n'),
              error: cidrs?.fields.additional_cidrs,
            }),
          ],
        )
      : additionalCidrs.length > 0
        ? html`<p>${additionalCidrs.map((cidr) => html`${code(cidr)} `)}</p>`
        : html`<p class="hint">None.</p>`,
  );
}
