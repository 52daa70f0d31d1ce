/** `/sites/{id}/settings`: local prefixes, and enrolment tokens. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { EnrolmentToken } from '#monitor/sensors/index.ts';
import { localCidrsMax, type Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
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
import { enrolCommand } from '../parts/enrol-command.ts';
import {
  NodeBody,
  nodeFields,
  nodeMissing,
  readNode,
  replaceField,
  type TypedNode,
} from '../parts/node-fields.ts';

interface Shown {
  /** Input of a refused form. */
  cidrs?: { text: string; fault: string };
  name?: { text: string; fault: string };
  token?: EnrolmentToken;
  /** Input of a refused token form. */
  node?: TypedNode;
  toast?: Html;
}

export function registerSettingsPage(app: App, deps: ConsoleDeps): void {
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

  app.post(
    '/sites/:siteId/settings/enrolment-tokens',
    { config: { isSensitive: true }, schema: { params: SiteParams, body: Type.Optional(NodeBody) } },
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

async function showSettings(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  shown: Shown,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const clusters = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === site.id);
  const nodes = await deps.sensors.listNodes(site.id);
  const content = [
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
    section(
      {
        id: 'enrol',
        title: 'Enrol a sensor',
        description: 'A token enrols one sensor and is valid for an hour. It is shown once.',
      },
      shown.token
        ? tokenBanner(deps, request, shown.token)
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
    ),
    section(
      {
        title: 'Clusters',
        description: 'Clusters of operations whose servers this site observes.',
      },
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
    ),
    section(
      { id: 'manufacturers', title: 'Manufacturer names' },
      html`<p>${manufacturerText(deps.vendors.registryHost)}</p>`,
    ),
  ];
  const isRefused = (shown.cidrs ?? shown.name ?? shown.node) !== undefined;
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Site settings',
      site: { site, page: 'settings' },
      isNarrow: true,
      status: isRefused ? 422 : 200,
      ...(shown.toast ? { toast: shown.toast } : {}),
    },
    content,
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

function nameForm(site: Site, viewer: Viewer, shown: Shown) {
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

function cidrsForm(site: Site, viewer: Viewer, shown: Shown) {
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

function tokenBanner(deps: ConsoleDeps, request: FastifyRequest, token: EnrolmentToken) {
  return [
    banner({
      tone: 'good',
      title: 'This token is shown only now',
      text: `Valid until ${formatTime(token.expiresAtMs)}, for one sensor.`,
    }),
    codeBlock({
      label: 'On the hypervisor',
      code: enrolCommand(deps.monitorUrl(), request, token.token),
    }),
  ];
}

/** Source of manufacturer names, for all sites (NET-2.1.5). */
function manufacturerText(registryHost: string | null): string {
  const bundled = 'Manufacturers of network interfaces come from a built-in table.';
  return registryHost === null
    ? `${bundled} No registry is used: SVC_MAC_VENDOR_LOOKUP_URL is empty.`
    : `${bundled} For missing prefixes, “./svc monitor resolve_mac_vendors” queries ${registryHost}, one per second, and sends only the first 24 bits of a MAC. An empty SVC_MAC_VENDOR_LOOKUP_URL disables this.`;
}
