/** The list of servers and the page of one: its facts, its power, its end. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { ProtectTraffic } from '#operations/protect-traffic/index.ts';
import type { PowerCommand, Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed, sendPage } from '#service-kit/pages/index.ts';
import { findServerOf, noSuchPage } from './guard-server.ts';
import { overviewPage } from './overview.page.ts';
import { serversPage } from './servers.page.ts';

export interface ServerPagesDeps {
  accounts: Accounts;
  servers: Servers;
  protectTraffic: ProtectTraffic;
  clock: Clock;
}

const serversMax = 500;
const Id = Type.Object({ id: Type.String() });
const PowerForm = Type.Object({
  action: Type.Union(
    (['start', 'shutdown', 'stop', 'reboot', 'reset'] as const).map((command) => Type.Literal(command)),
  ),
});

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes: Record<string, string> = {
  start: 'Starting.',
  shutdown: 'The server was asked to shut down.',
  stop: 'Switching off.',
  reboot: 'Rebooting.',
  reset: 'Resetting.',
  destroy: 'The server is being destroyed.',
};

export function registerServers(app: App, deps: ServerPagesDeps): void {
  app.get('/', async (request, reply) => {
    const visitor = request.visitor!;
    const [servers, tenants] = await Promise.all([
      deps.servers.listServers(visitor.actor, null, { order: 'oldest', limit: serversMax }),
      deps.accounts.findTenants(visitor.actor.tenantIds),
    ]);
    const traffic = await deps.protectTraffic.readLatest(
      visitor.actor,
      servers.map((server) => server.id),
    );
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, serversPage({ visitor, servers, tenants, traffic, nowMs }));
  });

  app.get(
    '/servers/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const actions = await deps.servers.listActions(visitor.actor, null, server.id, 10);
      const done = outcomes[request.query.done ?? ''];
      const toast = done === undefined ? undefined : { tone: 'info' as const, text: done };
      return sendPage(
        reply,
        overviewPage({ visitor, server, actions, nowMs: deps.clock.nowMs(), ...(toast && { toast }) }),
      );
    },
  );

  app.post('/servers/:id/actions', { schema: { params: Id, body: PowerForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const command = request.body.action as PowerCommand;
    const fault = await faultOf(() => deps.servers.changePower(visitor.actor, null, server.id, { command }));
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=${command}`, 303);
    const actions = await deps.servers.listActions(visitor.actor, null, server.id, 10);
    const toast = { tone: 'bad' as const, text: fault };
    return sendPage(reply, overviewPage({ visitor, server, actions, nowMs: deps.clock.nowMs(), toast }), 409);
  });

  app.post('/servers/:id/destroy', { schema: { params: Id } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const isMeant = isConfirmed(request.body, server.name);
    const fault = isMeant
      ? await faultOf(() => deps.servers.destroyServer(visitor.actor, null, server.id))
      : `Nothing was destroyed: the name typed is not ${server.name}.`;
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=destroy`, 303);
    const actions = await deps.servers.listActions(visitor.actor, null, server.id, 10);
    const page = { visitor, server, actions, nowMs: deps.clock.nowMs(), confirmError: fault };
    return sendPage(reply, overviewPage(page), isMeant ? 409 : 422);
  });
}

/** Runs a change; the sentence of its refusal, or null. A server that is gone by now is the usual 404. */
async function faultOf(change: () => Promise<unknown>): Promise<string | null> {
  try {
    await change();
    return null;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    if (error.code === 'servers.not_found') throw noSuchPage();
    return error.message;
  }
}
