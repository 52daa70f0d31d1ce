/** The page of a server: what it does now, and its power. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Guards } from '#operations/guards/index.ts';
import type { ProtectFindings, ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { PowerCommand } from '#operations/views/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chosenOf, sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { type LivePagesDeps, readLive } from '../traffic/live.routes.ts';
import { findServerOf } from './guard-server.ts';
import { type OverviewOptions, overviewPage } from './overview.page.ts';

export interface ServerPagesDeps extends LivePagesDeps {
  accounts: Accounts;
  protectIncidents: ProtectIncidents;
  protectTraffic: ProtectTraffic;
  protectFindings: Pick<ProtectFindings, 'countOf'>;
  bandwidth: Bandwidth;
  guards: Pick<Guards, 'readGuard'>;
  billing: Pick<Billing, 'balanceOf'>;
  auditTrail: AuditTrail;
  demo: Demo | null;
}

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
  resize: 'The server is being resized.',
  restore: 'The snapshot is being restored.',
  destroy: 'The server is being destroyed.',
};

export function registerServer(app: App, deps: ServerPagesDeps): void {
  app.get(
    '/servers/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const done = chosenOf(outcomes, request.query.done);
      const toast = done === undefined ? undefined : { tone: 'info' as const, text: done };
      return showOverview(deps, { visitor, server }, reply, 200, { ...(toast && { toast }) });
    },
  );

  app.post('/servers/:id/actions', { schema: { params: Id, body: PowerForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const command = request.body.action as PowerCommand;
    const fault = await faultOf(() => deps.servers.changePower(visitor.actor, null, server.id, { command }));
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=${command}`, 303);
    const toast = { tone: 'bad' as const, text: fault };
    return showOverview(deps, { visitor, server }, reply, 409, { toast });
  });
}

async function showOverview(
  deps: ServerPagesDeps,
  { visitor, server }: Pick<OverviewOptions, 'visitor' | 'server'>,
  reply: FastifyReply,
  status: number,
  state: Pick<OverviewOptions, 'toast'>,
): Promise<FastifyReply> {
  const { actor } = visitor;
  const subject = { serverId: server.id, tenantId: server.tenantId };
  const settings = await deps.protectSettings.find(actor, subject);
  const [live, actions, latest, history, attacks, counts, guard] = await Promise.all([
    settings.viewsOn ? readLive(deps, { visitor, server, subject, settings }, undefined) : undefined,
    deps.servers.listActions(actor, null, server.id, 10),
    deps.protectTraffic.readLatest(actor, [server.id]),
    deps.bandwidth.readHistory(actor, null, server.id, { granularity: 'month' }),
    deps.protectIncidents.readOpen(actor, [server.id]),
    deps.protectFindings.countOf(actor, [server.id]),
    deps.guards.readGuard(actor, server.id),
  ]);
  const traffic = { latest: latest.get(server.id), month: history?.current };
  const attack = attacks.get(server.id);
  const findings = counts.get(server.id);
  const nowMs = deps.clock.nowMs();
  const hasConsole = deps.servers.capabilitiesOf(server).includes('console');
  const page = {
    visitor,
    server,
    actions,
    traffic,
    live,
    attack,
    findings,
    guard,
    nowMs,
    hasConsole,
    ...state,
  };
  return sendPage(reply, overviewPage(page), status);
}

/** Runs a change; the sentence of its refusal, or null. A server that is gone by now is the usual 404. */
export async function faultOf(change: () => Promise<unknown>): Promise<string | null> {
  try {
    await change();
    return null;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    if (error.code === 'servers.not_found') throw noSuchPage();
    return error.message;
  }
}
