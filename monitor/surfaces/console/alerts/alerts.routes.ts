/** `/alerts`: the request for open and resolved alerts. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { registerAlert } from './alert.routes.ts';
import { alertsPage } from './alerts.page.ts';
import { registerChannels } from './channel.routes.ts';

const openShown = 200;
const pastShown = 50;
const Query = Type.Object({
  site: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  saved: Type.Optional(Type.String()),
});
export function registerAlerts(app: App, deps: ConsoleDeps): void {
  app.get('/alerts', { schema: { querystring: Query } }, (request, reply) =>
    showAlerts(deps, request, reply, {}),
  );
  registerAlert(app, deps);
  registerChannels(app, deps, (request, reply, secret) => showAlerts(deps, request, reply, { secret }));
}

async function showAlerts(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: { secret?: string },
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
  const known = { siteId, site, open, past, pastLimit, channels };
  const content = alertsPage(request, { ...known, shown, viewer, nowMs });
  const options = {
    title: 'Alerts',
    ...(query.saved ? { toast: toast('good', 'Saved.') } : {}),
  };
  return sendConsolePage(request, reply, options, content);
}
