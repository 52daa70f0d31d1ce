/** `/sites/{id}/settings`: what operators may change about a site, and the request for its page. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { NodeName } from '#monitor/placements/index.ts';
import type { ScanSchedule } from '#monitor/scans/index.ts';
import type { EnrolmentToken } from '#monitor/sensors/index.ts';
import { type ClusterMapping, localCidrsMax, type Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  code,
  codeBlock,
  definitionList,
  field,
  form,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  type Tone,
  toast,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import {
  enrolCommand,
  NodeBody,
  nodeFields,
  nodeMissing,
  readNode,
  replaceField,
  type TypedNode,
} from '../parts/node-fields.ts';

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
      return showSettings(deps, reply, site, saved);
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
        return showSettings(deps, reply, site, { name: { text, fault } });
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
        return showSettings(deps, reply, site, { cidrs: { text, fault } });
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
        return showSettings(deps, reply, site, { node: { ...request.body, fault: nodeMissing } });
      }
      try {
        const place = { node: chosen, replaces: request.body?.replaces !== undefined };
        const token = await deps.sensors.createToken(actor, site.id, place);
        // Rendered here instead of a redirect: only this answer contains the token.
        return await showSettings(deps, reply, site, { token });
      } catch (error) {
        const fault = faultText(error, 'sensors.invalid', 'sensors.node_taken');
        return showSettings(deps, reply, site, { node: { ...request.body, fault } });
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
        return showSettings(deps, reply, site, { fullScan: { ...request.body, fault } });
      }
      return reply.redirect(`/sites/${site.id}/settings?saved=1`, 303);
    },
  );
}

async function showSettings(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  { token, toast: message, ...refused }: Shown,
): Promise<FastifyReply> {
  const { request } = reply;
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

/** What the request before this page led to. */
interface ShownAnswer {
  /** Input of a refused form. */
  cidrs?: { text: string; fault: string };
  name?: { text: string; fault: string };
  /** Input of a refused token form. */
  node?: TypedNode;
  /** Input of a refused form of the daily scan. */
  fullScan?: { time: string; zone: string; fault: string };
  /** A new token, in the command that uses it. */
  token?: { expiresAtMs: number; command: string };
}

interface SettingsPage {
  site: Site;
  /** Those of the site. */
  clusters: readonly ClusterMapping[];
  nodes: NodeName[];
  /** Of the daily full scan. */
  schedule: ScanSchedule;
  /** Where missing manufacturer names are looked up; null: nowhere. */
  registryHost: string | null;
  shown: ShownAnswer;
  viewer: Viewer;
}

/** The page of a site's settings: local prefixes, and enrolment tokens. */
function settingsPage(page: SettingsPage): Content {
  const { site, clusters, shown, viewer } = page;
  return [
    pageHeader({ title: 'Site settings', state: stateOf(site, clusters.length) }),
    section({ title: 'Name' }, viewer.canChange ? nameForm(site, viewer, shown) : site.name),
    section(
      {
        title: 'Local prefixes',
        description:
          'Local prefixes decide which end of a connection is local, and so the direction of applications. They have no other effect.',
      },
      viewer.canChange ? cidrsForm(site, viewer, shown) : cidrsList(site),
    ),
    fullScanSection(page),
    enrolSection(page),
    clusterSection(page),
    section(
      {
        title: 'Programs that read',
        description: 'Grafana, Prometheus and your own programs read the traffic of this site with a token.',
      },
      html`<p>${link(`/sites/${site.id}/read-tokens`, 'Read tokens')}</p>`,
    ),
    section(
      { id: 'manufacturers', title: 'Manufacturer names' },
      html`<p>${manufacturerText(page.registryHost)}</p>`,
    ),
  ];
}

function fullScanSection({ site, schedule, shown, viewer }: SettingsPage): Content {
  const { time, zone } = shown.fullScan ?? schedule;
  const options = { action: `/sites/${site.id}/settings/full-scan`, csrfToken: viewer.csrfToken };
  return section(
    {
      id: 'full-scan',
      title: 'Daily full scan',
      description:
        'When sensors begin to scan all 65,535 TCP and UDP ports of each running server. Daylight saving is followed. A change applies from the next plan of each sensor.',
    },
    viewer.canChange
      ? form({ ...options, submit: 'Save time of the full scan' }, [
          field({
            name: 'time',
            label: 'Time',
            hint: 'Local time, such as 22:00.',
            required: true,
            maxLength: 5,
            value: time,
            error: shown.fullScan?.fault,
          }),
          field({
            name: 'zone',
            label: 'Time zone',
            hint: 'IANA name, such as America/New_York, Europe/Berlin or UTC.',
            required: true,
            maxLength: 64,
            value: zone,
          }),
        ])
      : `${time}, ${zone}`,
  );
}

function enrolSection({ site, nodes, shown, viewer }: SettingsPage): Content {
  return section(
    {
      id: 'enrol',
      title: 'Enrol a sensor',
      description: 'A token enrols one sensor and is valid for an hour. It is shown once.',
    },
    shown.token
      ? tokenBanner(shown.token)
      : viewer.canChange
        ? form(
            {
              action: `/sites/${site.id}/settings/enrolment-tokens`,
              csrfToken: viewer.csrfToken,
              submit: 'Create enrolment token',
            },
            [nodeFields(nodes, shown.node ?? {}), replaceField(shown.node ?? {})],
          )
        : banner({ tone: 'info', title: 'Your role is read-only.' }),
  );
}

function clusterSection({ clusters }: SettingsPage): Content {
  return section(
    { title: 'Clusters', description: 'Clusters of operations whose servers this site observes.' },
    [
      definitionList([
        {
          term: 'Mapped here',
          value:
            clusters.length > 0
              ? clusters.map((mapping) => `cluster ${mapping.clusterId}`).join(', ')
              : 'none',
        },
      ]),
      html`<p>${link('/operations#clusters', 'Map clusters')}</p>`,
    ],
  );
}

function stateOf(site: Site, clusters: number): { tone: Tone; text: string } {
  const prefixes = site.localCidrs.length;
  if (prefixes === 0)
    return { tone: 'warn', text: 'No local prefixes yet, so applications have no direction.' };
  const local = prefixes === 1 ? '1 local prefix' : `${prefixes} local prefixes`;
  const mapped = clusters === 1 ? '1 cluster is' : `${clusters === 0 ? 'no' : clusters} clusters are`;
  return { tone: 'info', text: `${local}; ${mapped} mapped here.` };
}

function nameForm(site: Site, viewer: Viewer, shown: ShownAnswer) {
  return form(
    { action: `/sites/${site.id}/settings/name`, csrfToken: viewer.csrfToken, submit: 'Rename' },
    field({
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      value: shown.name?.text ?? site.name,
      error: shown.name?.fault,
    }),
  );
}

function cidrsForm(site: Site, viewer: Viewer, shown: ShownAnswer) {
  return form(
    {
      action: `/sites/${site.id}/settings/local-cidrs`,
      csrfToken: viewer.csrfToken,
      submit: 'Save local prefixes',
    },
    field({
      kind: 'textarea',
      name: 'local_cidrs',
      label: 'Prefixes',
      hint: `One per line, IPv4 or IPv6, such as 192.0.2.0/24; at most ${localCidrsMax}. Sensors apply them with their next plan.`,
      rows: Math.max(4, Math.min(16, site.localCidrs.length + 1)),
      isCode: true,
      value: shown.cidrs?.text ?? site.localCidrs.join('\n'),
      error: shown.cidrs?.fault,
    }),
  );
}

function cidrsList(site: Site) {
  return definitionList([
    {
      term: 'Prefixes',
      value: site.localCidrs.length > 0 ? site.localCidrs.map((cidr) => code(cidr)) : 'none',
    },
  ]);
}

function tokenBanner({ expiresAtMs, command }: NonNullable<ShownAnswer['token']>): Content {
  return [
    banner({
      tone: 'good',
      title: 'This token is shown only now',
      text: `Valid until ${formatTime(expiresAtMs)}, for one sensor.`,
    }),
    codeBlock({ label: 'On the hypervisor', code: command }),
  ];
}

/** Source of manufacturer names, for all sites (NET-2.1.5). */
function manufacturerText(registryHost: string | null): string {
  const bundled = 'Manufacturers of network interfaces come from a built-in table.';
  return registryHost === null
    ? `${bundled} No registry is used: SVC_MAC_VENDOR_LOOKUP_URL is empty.`
    : `${bundled} For missing prefixes, “./svc monitor resolve_mac_vendors” queries ${registryHost}, one per second, and sends only the first 24 bits of a MAC. An empty SVC_MAC_VENDOR_LOOKUP_URL disables this.`;
}
