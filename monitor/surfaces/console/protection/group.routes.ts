/** `/sites/{id}/protection/groups`: the requests for one group of prefixes, and what operators may change about it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import {
  groupPrefixesMax,
  type HostGroup,
  noChoices,
  resolveLevels,
  resolveSite,
  type SiteProtection,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  code,
  confirm,
  drawer,
  field,
  type Html,
  html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, notFound, requireConfirmed, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import {
  changedText,
  inheritedBy,
  type Refused,
  Revision,
  readTexts,
  refusalOf,
  textsOf,
  thresholdForm,
  thresholdProperties,
  thresholdTable,
} from './threshold-parts.ts';

export const GroupParams = Type.Object({ ...SiteParams.properties, groupId: Id });
const GroupBody = Type.Object({
  ...Revision,
  name: Type.String({ maxLength: 200 }),
  prefixes: Type.String({ maxLength: 32_768 }),
  ...thresholdProperties,
});

export function registerGroups(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/groups';
  const save = async (
    request: FastifyRequest,
    reply: FastifyReply,
    siteId: number,
    groupId: number | null,
    body: { revision: string; name: string; prefixes: string },
  ) => {
    const site = await siteOf(deps.sites, siteId);
    const { name, prefixes } = body;
    const input = { name, prefixes: prefixes.split(/[\s,]+/), thresholds: readTexts(body) };
    try {
      const { actor } = viewerOf(request);
      const id = await deps.protection.saveGroup(actor, siteId, groupId, input, Number(body.revision));
      if (id === null) throw noGroup();
      return await reply.redirect(`/sites/${siteId}/protection/groups/${id}?done=saved`, 303);
    } catch (error) {
      if (error instanceof HttpError) throw error;
      return showGroup(deps, reply, site, groupId, refusalOf(error, body));
    }
  };

  app.get(`${path}/new`, { schema: { params: SiteParams } }, async (request, reply) =>
    showGroup(deps, reply, await siteOf(deps.sites, request.params.siteId), null),
  );

  app.post(path, { schema: { params: SiteParams, body: GroupBody } }, (request, reply) =>
    save(request, reply, request.params.siteId, null, request.body),
  );

  app.get(
    `${path}/:groupId`,
    { schema: { params: GroupParams, querystring: DoneQuery } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showGroup(deps, reply, site, request.params.groupId);
    },
  );

  app.post(`${path}/:groupId`, { schema: { params: GroupParams, body: GroupBody } }, (request, reply) =>
    save(request, reply, request.params.siteId, request.params.groupId, request.body),
  );

  app.post(
    `${path}/:groupId/delete`,
    { schema: { params: GroupParams, body: Type.Object(Revision) } },
    async (request, reply) => {
      const { siteId, groupId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const { settings } = await deps.protection.describeSite(siteId, site.localCidrs);
      const group = settings.groups.find((one) => one.id === groupId);
      if (!group) throw noGroup();
      requireConfirmed(request.body, group.name);
      try {
        const { actor } = viewerOf(request);
        await deps.protection.removeGroup(actor, siteId, groupId, Number(request.body.revision));
      } catch (error) {
        return showGroup(deps, reply, site, groupId, refusalOf(error, {}));
      }
      return reply.redirect(`/sites/${siteId}/protection?done=removed#groups`, 303);
    },
  );
}

export const noGroup = () => notFound('This group does not exist.');

async function showGroup(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  groupId: number | null,
  refused?: Refused,
): Promise<FastifyReply> {
  const { request } = reply;
  const found = await deps.protection.describeSite(site.id, site.localCidrs);
  const group = groupId === null ? null : found.settings.groups.find((one) => one.id === groupId);
  if (group === undefined) throw noGroup();
  const viewer = viewerOf(request);
  if (!group && !viewer.canChange)
    throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
  return sendConsolePage(
    reply,
    {
      title: group?.name ?? 'New group',
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      done: { saved: 'Saved. Sensors apply it with their next plan.' },
    },
    groupPage(request, { site, found, group, viewer, nowMs: deps.clock.nowMs(), refused }),
  );
}

interface GroupPage {
  site: Site;
  found: SiteProtection;
  /** Null: a new one. */
  group: HostGroup | null;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
}

/** The page of one group of prefixes with thresholds of their own, and of a new one. */
function groupPage(request: FastifyRequest, page: GroupPage): Content {
  const { site, found, group, viewer, nowMs, refused } = page;
  const edit = groupForm(page);
  if (!group)
    return [
      pageHeader({ title: 'New group', state: { tone: 'neutral', text: `Of ${site.name}.` } }),
      section({ title: refused ? 'The group was not saved' : 'Group' }, edit),
    ];
  const warnings = found.warnings.filter((one) => one.groupId === group.id);
  const chosen = [
    { level: 'site' as const, choices: found.settings.site.thresholds },
    { level: 'group' as const, choices: group.thresholds },
  ];
  return [
    pageHeader({
      title: group.name,
      state: {
        tone: warnings.length > 0 ? 'warn' : 'good',
        text: html`${group.prefixes.length === 1 ? '1 prefix' : `${group.prefixes.length} prefixes`}; ${changedText(group, nowMs)}.`,
      },
      actions: [
        link(`/sites/${site.id}/protection/groups/${group.id}/what-if`, 'What if', { kind: 'button' }),
        viewer.canChange &&
          !refused &&
          drawer({ id: 'edit-group', open: 'Change', title: `Change ${group.name}` }, edit),
        viewer.canChange && removeDrawer(page, group),
      ],
    }),
    warnings.map(({ text }) => banner({ tone: 'warn', title: text })),
    refused && section({ title: 'The group was not saved' }, edit),
    section({ title: 'Prefixes' }, html`<p>${group.prefixes.map((prefix) => html`${code(prefix)} `)}</p>`),
    section(
      {
        title: 'Thresholds',
        description: 'Of each address in the group, unless its server or the address itself has its own.',
      },
      thresholdTable(request, resolveLevels(thresholdDefaults, chosen)),
    ),
  ];
}

function groupForm({ site, found, group, viewer, refused }: GroupPage): Html {
  const typed = (name: string, stored: string) => {
    const text = refused?.typed[name];
    return typeof text === 'string' ? text : stored;
  };
  const path = `/sites/${site.id}/protection/groups`;
  return thresholdForm({
    action: group ? `${path}/${group.id}` : path,
    csrfToken: viewer.csrfToken,
    submit: group ? 'Save group' : 'Add group',
    id: group ? `group-${group.id}` : 'group-new',
    revision: group?.revision ?? 0,
    texts: refused ? readTexts(refused.typed) : textsOf(group?.thresholds ?? noChoices),
    inherited: inheritedBy(resolveSite(found.settings.site.thresholds)),
    refused,
    before: [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 80,
        value: typed('name', group?.name ?? ''),
        error: refused?.fields.name,
      }),
      field({
        kind: 'textarea',
        name: 'prefixes',
        label: 'Prefixes',
        required: true,
        hint: `One per line, such as 192.0.2.0/24; at most ${groupPrefixesMax}. Groups may overlap: the longest prefix counts.`,
        rows: Math.max(3, Math.min(12, (group?.prefixes.length ?? 0) + 1)),
        isCode: true,
        value: typed('prefixes', group?.prefixes.join('\n') ?? ''),
        error: refused?.fields.prefixes,
      }),
    ],
  });
}

function removeDrawer({ site, viewer }: GroupPage, group: HostGroup): Html {
  return drawer(
    { id: 'remove-group', open: 'Remove', title: `Remove ${group.name}`, openKind: 'danger' },
    confirm({
      action: `/sites/${site.id}/protection/groups/${group.id}/delete`,
      csrfToken: viewer.csrfToken,
      name: group.name,
      consequence:
        'Its addresses get the thresholds of the next shorter prefix that has a group, else those of the site.',
      submit: 'Remove group',
      fields: { revision: group.revision },
    }),
  );
}
