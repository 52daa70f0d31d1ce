/** `/operations`: what operators may change about the connection to operations, and the request for its page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { OperationsError } from '#monitor/operations-client/index.ts';
import { requireOperator } from '#monitor/operators/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { type Html, isConfirmed, toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { operationsPage, type ShownAnswer } from './operations.page.ts';
import { secretName, type TypedConnection } from './operations-parts.ts';

interface Shown extends ShownAnswer {
  toast?: Html;
}

const notSynced = {
  not_enabled: 'Nothing was imported: no connection is enabled.',
  running: 'Nothing was imported: another import is running. Its result appears under Feeds.',
} as const;

const done: Readonly<Record<string, string>> = {
  saved: 'Connection saved without a test.',
  tested_and_saved: 'Operations answered, and the connection is saved.',
  tested: 'Operations answered; the permissions below are current.',
  mapped: 'Clusters mapped.',
  imported: 'Inventory imported.',
};

export function registerOperations(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({ done: Type.Optional(Type.String()) });
  app.get('/operations', { schema: { querystring: Query } }, (request, reply) => {
    const text = done[request.query.done ?? ''];
    return showOperations(deps, request, reply, text ? { toast: toast('good', text) } : {});
  });

  const Connection = Type.Object({
    base_url: Type.String({ maxLength: 2_000 }),
    token: Type.String({ maxLength: 400 }),
    is_enabled: Type.Optional(Type.String()),
    is_sync_automatic: Type.Optional(Type.String()),
  });
  for (const [path, isTested] of [
    ['/operations/connection', true],
    ['/operations/connection/untested', false],
  ] as const) {
    app.post(path, { schema: { body: Connection } }, (request, reply) => {
      const { base_url: baseUrl, token, is_enabled, is_sync_automatic } = request.body;
      const typed = {
        baseUrl,
        isEnabled: is_enabled !== undefined,
        isSyncAutomatic: is_sync_automatic !== undefined,
      };
      const save = async () => {
        const { actor } = viewerOf(request);
        const input = { ...typed, token: token.trim() || null };
        await (isTested ? deps.connection.testAndSave(actor, input) : deps.connection.save(actor, input));
      };
      return attempt(deps, request, reply, isTested ? 'tested_and_saved' : 'saved', save, typed);
    });
  }

  app.post('/operations/test', (request, reply) =>
    attempt(deps, request, reply, 'tested', () => deps.connection.check()),
  );

  app.post('/operations/import', (request, reply) =>
    attempt(deps, request, reply, 'imported', async () => {
      const result = await deps.inventory.syncNow(viewerOf(request).actor);
      if (result.outcome === 'failed') throw new ShownFault(result.error);
      if (result.outcome !== 'imported') throw new ShownFault(notSynced[result.outcome]);
    }),
  );

  app.post(
    '/operations/clusters',
    {
      schema: {
        body: Type.Object({
          cluster_id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
          site_id: Type.String({ pattern: '^[0-9]{0,15}$' }),
        }),
      },
    },
    (request, reply) =>
      attempt(deps, request, reply, 'mapped', async () => {
        const { cluster_id, site_id } = request.body;
        const siteId = site_id === '' ? null : Number(site_id);
        if (siteId !== null && !(await deps.sites.find(siteId)))
          throw new ShownFault('This site does not exist.');
        await deps.sites.mapCluster(viewerOf(request).actor, Number(cluster_id), siteId);
      }),
  );

  app.post('/operations/notice-secret', async (request, reply) => {
    if ((await deps.connection.noticeStatus()) && !isConfirmed(request.body, secretName)) {
      const message = `Nothing was changed: type “${secretName}” to confirm.`;
      throw new HttpError(422, { code: 'not_confirmed', message });
    }
    try {
      const secret = await deps.connection.createNoticeSecret(viewerOf(request).actor);
      // Rendered here instead of a redirect: only this answer contains the secret.
      return await showOperations(deps, request, reply, { secret });
    } catch (error) {
      faultText(error);
    }
  });
}

/** An error whose message belongs on the page. */
class ShownFault extends Error {}

/** Runs a change; then redirects with a message, or shows the page with the error. */
async function attempt(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  outcome: string,
  change: () => Promise<void>,
  typed?: Omit<TypedConnection, 'fault'>,
): Promise<FastifyReply> {
  try {
    requireOperator(viewerOf(request).actor);
    await change();
  } catch (error) {
    const isShown = error instanceof OperationsError || error instanceof ShownFault;
    const fault = isShown ? error.message : faultText(error, 'connection.invalid');
    return showOperations(deps, request, reply, typed ? { connection: { ...typed, fault } } : { fault });
  }
  return reply.redirect(`/operations?done=${outcome}`, 303);
}

async function showOperations(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: Shown,
): Promise<FastifyReply> {
  const nowMs = Date.now();
  const [view, inventory, feeds, heldBack, notices, clusters, mappings, sites] = await Promise.all([
    deps.connection.view(),
    deps.inventory.state(),
    Promise.all(deps.feeds.all.map(async ({ feed, state }) => ({ feed, state: await state() }))),
    deps.feeds.listHeldBack(),
    deps.connection.noticeStatus(),
    deps.inventory.listClusters(),
    deps.sites.listClusters(),
    deps.sites.list(),
  ]);
  const monitorUrl = deps.monitorUrl() ?? `${request.protocol}://${request.host}`;
  const known = { view, inventory, feeds, heldBack, notices, clusters, mappings, sites, monitorUrl };
  const content = operationsPage(request, { ...known, shown, viewer: viewerOf(request), nowMs });
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Operations',
      status: shown.fault || shown.connection ? 422 : 200,
      ...(shown.toast ? { toast: shown.toast } : {}),
    },
    content,
  );
}
