/** `/sites/{id}/protection/groups`: the requests for one group of prefixes, and what operators may change about it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { isConfirmed, toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { Revision, refusalOf, thresholdProperties } from './form-body.ts';
import { groupPage } from './group.page.ts';
import type { Refused } from './threshold-parts.ts';
import { readTexts } from './threshold-text.ts';

export const GroupParams = Type.Object({
  ...SiteParams.properties,
  groupId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
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
      return showGroup(deps, request, reply, site, groupId, refusalOf(error, body));
    }
  };

  app.get(`${path}/new`, { schema: { params: SiteParams } }, async (request, reply) =>
    showGroup(deps, request, reply, await siteOf(deps.sites, request.params.siteId), null),
  );

  app.post(path, { schema: { params: SiteParams, body: GroupBody } }, (request, reply) =>
    save(request, reply, request.params.siteId, null, request.body),
  );

  const Query = Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) });
  app.get(
    `${path}/:groupId`,
    { schema: { params: GroupParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showGroup(deps, request, reply, site, request.params.groupId);
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
      if (!isConfirmed(request.body, group.name)) {
        const message = `Nothing was changed: type ${group.name} to confirm.`;
        throw new HttpError(422, { code: 'not_confirmed', message });
      }
      try {
        const { actor } = viewerOf(request);
        await deps.protection.removeGroup(actor, siteId, groupId, Number(request.body.revision));
      } catch (error) {
        return showGroup(deps, request, reply, site, groupId, refusalOf(error, {}));
      }
      return reply.redirect(`/sites/${siteId}/protection?done=removed#groups`, 303);
    },
  );
}

export function noGroup(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This group does not exist.' });
}

async function showGroup(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  groupId: number | null,
  refused?: Refused,
): Promise<FastifyReply> {
  const found = await deps.protection.describeSite(site.id, site.localCidrs);
  const group = groupId === null ? null : found.settings.groups.find((one) => one.id === groupId);
  if (group === undefined) throw noGroup();
  const viewer = viewerOf(request);
  if (!group && !viewer.canChange)
    throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
  const isSaved = (request.query as { done?: string }).done === 'saved';
  return sendConsolePage(
    request,
    reply,
    {
      title: group?.name ?? 'New group',
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      ...(isSaved ? { toast: toast('good', 'Saved. Sensors apply it with their next plan.') } : {}),
    },
    groupPage(request, { site, found, group, viewer, nowMs: deps.clock.nowMs(), refused }),
  );
}
