/** `/alerts`: the request for open and resolved alerts, and what operators may do to notification channels. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { done, registerAlert } from './alert.routes.ts';
import { alertsPage, type ShownAnswer } from './alerts.page.ts';

const openShown = 200;
const pastShown = 50;
const Query = Type.Object({
  site: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  saved: Type.Optional(Type.String()),
});
const ChannelParams = Type.Object({
  channelId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
const ChannelForm = Type.Object({
  kind: Type.Union([Type.Literal('email'), Type.Literal('webhook')]),
  name: Type.String({ maxLength: 200 }),
  recipients: Type.Optional(Type.String({ maxLength: 5000 })),
  url: Type.Optional(Type.String({ maxLength: 1000 })),
});

export function registerAlerts(app: App, deps: ConsoleDeps): void {
  app.get('/alerts', { schema: { querystring: Query } }, (request, reply) =>
    showAlerts(deps, request, reply, {}),
  );
  registerAlert(app, deps);
  registerChannelActions(app, deps);
}

function registerChannelActions(app: App, deps: ConsoleDeps): void {
  app.post('/alerts/channels', { schema: { body: ChannelForm } }, async (request, reply) => {
    try {
      const { secret } = await deps.alerts.addChannel(viewerOf(request).actor, request.body);
      if (secret === null) return await reply.redirect('/alerts?saved=1#channels', 303);
      // Rendered here instead of a redirect: only this answer contains the secret.
      return await showAlerts(deps, request, reply, { secret });
    } catch (error) {
      const fault = faultText(error, 'alerts.invalid', 'alerts.limit', 'webhooks.invalid');
      return showAlerts(deps, request, reply, { fault, typed: request.body });
    }
  });
  const actions: Record<string, (request: FastifyRequest, channelId: number) => Promise<boolean>> = {
    test: (request, id) => deps.alerts.sendTest(viewerOf(request).actor, id),
    enable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, true),
    disable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, false),
    delete: (request, id) => deps.alerts.deleteChannel(viewerOf(request).actor, id),
  };
  for (const [name, act] of Object.entries(actions)) {
    app.post(
      `/alerts/channels/:channelId/${name}`,
      { schema: { params: ChannelParams } },
      async (request, reply) => {
        await done(act(request, request.params.channelId), 'channel').catch((error: unknown) => {
          const message = faultText(error, 'alerts.test_limit');
          throw new HttpError(429, { code: 'test_limit', message }, { 'retry-after': '300' });
        });
        return reply.redirect('/alerts?saved=1#channels', 303);
      },
    );
  }
}

async function showAlerts(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: ShownAnswer,
) {
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const query = request.query as Static<typeof Query>;
  const siteId = query.site ?? null;
  const pastLimit = rowsLimit(request, pastShown);
  const [open, past, channels] = await Promise.all([
    deps.alerts.listOpen(siteId, rowsLimit(request, openShown)),
    deps.alerts.listResolved(siteId, pastLimit),
    deps.alerts.listChannels(),
  ]);
  const site = viewer.sites.find((one) => one.id === siteId) ?? null;
  const known = { siteId, site, open, past, pastLimit, channels, hasMail: deps.alerts.hasMail };
  const content = alertsPage(request, { ...known, shown, viewer, nowMs });
  const options = {
    title: 'Alerts',
    status: shown.fault ? 422 : 200,
    ...(query.saved ? { toast: toast('good', 'Saved.') } : {}),
  };
  return sendConsolePage(request, reply, options, content);
}
