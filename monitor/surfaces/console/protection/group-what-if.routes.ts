/** `/sites/{id}/protection/groups/{group}/what-if`: starting, following and cancelling the replay of a group. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { refusalOf, thresholdProperties } from './form-body.ts';
import { GroupParams, noGroup } from './group.routes.ts';
import { groupWhatIfHref, groupWhatIfPage } from './group-what-if.page.ts';
import type { Refused } from './threshold-parts.ts';
import { readTexts } from './threshold-text.ts';

const ReplayParams = Type.Object({ ...GroupParams.properties, replayId: Type.String({ format: 'uuid' }) });
const Query = Type.Object({
  replay: Type.Optional(Type.String({ maxLength: 36 })),
  done: Type.Optional(Type.String({ maxLength: 20 })),
});
const replaysShown = 20;
const done: Readonly<Record<string, string>> = {
  started: 'The replay has started.',
  cancelled: 'The replay was cancelled.',
};

export function registerGroupWhatIf(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/groups/:groupId/what-if';
  app.get(path, { schema: { params: GroupParams, querystring: Query } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    return show(deps, request, reply, site, request.params.groupId);
  });

  app.post(
    path,
    { schema: { params: GroupParams, body: Type.Object(thresholdProperties) } },
    async (request, reply) => {
      const { siteId, groupId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const { actor } = viewerOf(request);
      try {
        const id = await deps.protection.startGroupReplay(actor, siteId, groupId, readTexts(request.body));
        if (id === null) throw noGroup();
      } catch (error) {
        return show(deps, request, reply, site, groupId, refusalOf(error, request.body));
      }
      return reply.redirect(`${groupWhatIfHref(siteId, groupId)}?done=started`, 303);
    },
  );

  app.post(`${path}/:replayId/cancel`, { schema: { params: ReplayParams } }, async (request, reply) => {
    const { siteId, groupId, replayId } = request.params;
    await siteOf(deps.sites, siteId);
    let isCancelled = false;
    try {
      isCancelled = await deps.protection.cancelGroupReplay(viewerOf(request).actor, siteId, replayId);
    } catch (error) {
      faultText(error);
    }
    return reply.redirect(`${groupWhatIfHref(siteId, groupId)}${isCancelled ? '?done=cancelled' : ''}`, 303);
  });
}

async function show(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  groupId: number,
  refused?: Refused,
): Promise<FastifyReply> {
  const { protection } = deps;
  const [found, replays] = await Promise.all([
    protection.describeSite(site.id, site.localCidrs),
    protection.listGroupReplays(site.id, groupId, replaysShown),
  ]);
  const group = found.settings.groups.find((one) => one.id === groupId);
  if (!group) throw noGroup();
  const { replay: wanted, done: text = '' } = request.query as { replay?: string; done?: string };
  const replay = replays.find(({ id }) => id === wanted) ?? replays[0];
  const shown = replay ? { replay, addresses: await protection.listReplayed(site.id, replay.id) } : null;
  const nowMs = deps.clock.nowMs();
  return sendConsolePage(
    request,
    reply,
    {
      title: `What if: ${group.name}`,
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      ...(done[text] ? { toast: toast('good', done[text]) } : {}),
    },
    groupWhatIfPage(request, {
      site,
      found,
      group,
      replays,
      shown,
      viewer: viewerOf(request),
      nowMs,
      refused,
    }),
  );
}
