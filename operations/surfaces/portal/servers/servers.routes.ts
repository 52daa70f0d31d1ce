/** The list of servers and the page of one: what it does now, and its power. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Guards } from '#operations/guards/index.ts';
import type { ProtectFindings, ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { PowerCommand, ServerFilter } from '#operations/views/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import { type Demo, demoBanner } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Content, chosenOf, sendPage, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { readDaySteps } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { type LivePagesDeps, readLive } from '../traffic/live.routes.ts';
import { readAccountFigures } from './account-figures.ts';
import { attackHref } from './attack.routes.ts';
import { findServerOf } from './guard-server.ts';
import { type OverviewOptions, overviewPage } from './overview.page.ts';
import { type ServersQuery, serversPage, statusChoices } from './servers.page.ts';

interface ServerPagesDeps extends LivePagesDeps {
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

const pageSize = 100;
const ListQuery = Type.Object({
  q: Type.Optional(Type.String({ maxLength: 100 })),
  status: Type.Optional(Type.String({ maxLength: 20 })),
  sort: Type.Optional(Type.String({ maxLength: 20 })),
  direction: Type.Optional(Type.String({ maxLength: 4 })),
  after: Type.Optional(Type.String({ maxLength: 100 })),
});
const Id = Type.Object({ id: Type.String() });
const PowerForm = Type.Object({
  action: Type.Union(
    (['start', 'shutdown', 'stop', 'reboot', 'reset'] as const).map((command) => Type.Literal(command)),
  ),
});

/** The query without what is empty or says nothing we know. */
function plainQuery(given: Record<string, string | undefined>): ServersQuery {
  const known = statusChoices.some((choice) => choice.value === given.status);
  const q = given.q?.trim();
  const { sort, direction, after } = given;
  const query = {
    q: q === '' ? undefined : q,
    status: known ? given.status : undefined,
    sort,
    direction,
    after,
  };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}

function filterOf(query: ServersQuery): ServerFilter {
  const isDescending = query.direction === 'desc';
  const byName = isDescending ? '-name' : 'name';
  const after = /^([1-9]\d{0,15})\.(.*)$/s.exec(query.after ?? '');
  const statuses = statusChoices.find((choice) => choice.value === query.status)?.statuses;
  return {
    order: query.sort === 'name' ? byName : isDescending ? 'newest' : 'oldest',
    limit: pageSize,
    ...(query.q === undefined ? {} : { search: query.q }),
    ...(statuses === undefined ? {} : { statuses }),
    ...(after === null ? {} : { after: { id: Number(after[1]), name: after[2]! } }),
  };
}

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes: Record<string, string> = {
  start: 'Starting.',
  shutdown: 'The server was asked to shut down.',
  stop: 'Switching off.',
  reboot: 'Rebooting.',
  reset: 'Resetting.',
  resize: 'The server is being resized.',
  destroy: 'The server is being destroyed.',
};

export function registerServers(app: App, deps: ServerPagesDeps): void {
  app.get('/', { schema: { querystring: ListQuery } }, (request, reply) =>
    showList(deps, request.visitor!, plainQuery(request.query), reply),
  );

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

async function showList(
  deps: ServerPagesDeps,
  visitor: Visitor,
  query: ServersQuery,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const filter = filterOf(query);
  const { after: _, ...whole } = filter;
  const [found, total, counts, tenants] = await Promise.all([
    deps.servers.listServers(visitor.actor, null, { ...filter, limit: pageSize + 1 }),
    deps.servers.countServers(visitor.actor, null, whole),
    deps.servers.countByStatus(visitor.actor, null),
    deps.accounts.findTenants(visitor.actor.tenantIds),
  ]);
  const servers = found.slice(0, pageSize);
  const ids = servers.map((server) => server.id);
  const nowMs = deps.clock.nowMs();
  const isWhole = query.q === undefined && query.status === undefined && query.after === undefined;
  const [traffic, day, costs, attacks, findings, account] = await Promise.all([
    deps.protectTraffic.readLatest(visitor.actor, ids),
    readDaySteps(deps.protectTraffic, visitor.actor, { serverIds: ids }, 'server', nowMs),
    deps.servers.costOfMonth(visitor.actor, ids),
    deps.protectIncidents.readOpen(visitor.actor, ids),
    deps.protectFindings.countOf(visitor.actor, ids),
    isWhole && total > 0 ? readAccountFigures(deps, visitor, tenants) : null,
  ]);
  const url = withQuery('/client/', query);
  const last = servers.at(-1);
  const nextHref =
    found.length > pageSize && last ? withQuery(url, { after: `${last.id}.${last.name}` }) : undefined;
  const demo = deps.demo && isWhole && demoLine(deps.demo);
  const page = { visitor, servers, tenants, counts, query, url, total, nextHref, demo };
  return sendPage(reply, serversPage({ ...page, traffic, day, costs, attacks, findings, account, nowMs }));
}

function demoLine({ attack }: Demo): Content {
  const best = { href: '/client/traffic/', label: 'Explore traffic' };
  return attack === null
    ? demoBanner('See what each server talks to, minute by minute.', [best])
    : demoBanner('Attack one of your servers, and watch how it is detected within seconds.', [
        { href: attackHref, label: 'Attack a server' },
        best,
      ]);
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
  const page = { visitor, server, actions, traffic, live, attack, findings, guard, nowMs, ...state };
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
