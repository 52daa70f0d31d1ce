/** `/sites/{id}/protection/hand-off`: the request for rules and actions, the limit, and what operators may do to an action. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { type Refused, Revision, refusalOf } from './form-body.ts';
import { handOffPage } from './hand-off.page.ts';

const actionsShown = 100;
const Query = Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) });
const ActionParams = Type.Object({
  ...SiteParams.properties,
  actionId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

const done: Readonly<Record<string, string>> = {
  saved: 'Saved.',
  removed: 'Rule removed. Its actions end now.',
  approved: 'The action starts now.',
  ended: 'The action ends now.',
  given_up: 'The action is not tried any more.',
};

export function registerHandOff(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/hand-off';
  app.get(path, { schema: { params: SiteParams, querystring: Query } }, async (request, reply) =>
    showHandOff(deps, request, reply, await siteOf(deps.sites, request.params.siteId)),
  );

  const Limit = Type.Object({ ...Revision, addresses_max: Type.String({ maxLength: 20 }) });
  app.post(`${path}/limit`, { schema: { params: SiteParams, body: Limit } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const { addresses_max: text, revision } = request.body;
    try {
      await deps.handOff.setLimit(viewerOf(request).actor, site.id, text, Number(revision));
    } catch (error) {
      return showHandOff(deps, request, reply, site, refusalOf(error, request.body));
    }
    return reply.redirect(`/sites/${site.id}/protection/hand-off?done=saved#limit`, 303);
  });

  const onAction = (
    name: string,
    operation: 'approveAction' | 'endAction' | 'giveUpAction',
    answer: string,
  ) =>
    app.post(
      `${path}/actions/:actionId/${name}`,
      { schema: { params: ActionParams } },
      async (request, reply) => {
        const { siteId, actionId } = request.params;
        await siteOf(deps.sites, siteId);
        const { actor } = viewerOf(request);
        const isDone = await deps.handOff[operation](actor, siteId, actionId).catch((error: unknown) => {
          faultText(error);
          return false;
        });
        if (!isDone) {
          const message = 'This action has changed in the meantime. Load the page again to see its state.';
          throw new HttpError(409, { code: 'action_changed', message });
        }
        return reply.redirect(`/sites/${siteId}/protection/hand-off?done=${answer}#actions`, 303);
      },
    );
  onAction('approve', 'approveAction', 'approved');
  onAction('end', 'endAction', 'ended');
  onAction('give-up', 'giveUpAction', 'given_up');
}

async function showHandOff(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  limit?: Refused,
): Promise<FastifyReply> {
  const [found, actions] = await Promise.all([
    deps.handOff.describeSite(site.id),
    deps.handOff.listActions(site.id, null, rowsLimit(request, actionsShown)),
  ]);
  const text = done[(request.query as { done?: string }).done ?? ''];
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Hand-off',
      site: { site, page: 'protection' },
      status: limit?.status ?? 200,
      ...(text ? { toast: toast('good', text) } : {}),
    },
    handOffPage(request, {
      ...{ site, found, actions, limit },
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
    }),
  );
}
