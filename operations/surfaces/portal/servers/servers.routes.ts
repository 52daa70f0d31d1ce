/** The list of servers and the page of one: its facts, its power, its end. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { ProtectFindings, ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { FieldFault, PowerCommand, ServerFilter, Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed, sendPage, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { findServerOf } from './guard-server.ts';
import { type OverviewOptions, overviewPage } from './overview.page.ts';
import { type ServersQuery, serversPage, statusChoices } from './servers.page.ts';

export interface ServerPagesDeps {
  accounts: Accounts;
  servers: Servers;
  protectIncidents: ProtectIncidents;
  protectTraffic: ProtectTraffic;
  protectFindings: Pick<ProtectFindings, 'countOf'>;
  bandwidth: Bandwidth;
  clock: Clock;
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
const WordsForm = Type.Object({
  name: Type.String({ maxLength: 1_000 }),
  hostname: Type.String({ maxLength: 1_000 }),
  labels: Type.String({ maxLength: 16_384 }),
});
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
  destroy: 'The server is being destroyed.',
  words: 'Saved.',
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
      const done = outcomes[request.query.done ?? ''];
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

  app.post('/servers/:id/words', { schema: { params: Id, body: WordsForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const { name, hostname, labels: text } = request.body;
    const labels = readLabels(text, server.labels);
    const faults = new Map<string, string>();
    if (labels === null) faults.set('labels', 'Write one label a line, such as env=prod.');
    else {
      const input = { name: name.trim(), hostname: hostname.trim(), labels };
      try {
        await deps.servers.describeServer(visitor.actor, null, server.id, input);
        return reply.redirect(`/client/servers/${server.id}?done=words`, 303);
      } catch (error) {
        if (!(error instanceof CodedError) || error.code !== 'servers.invalid') throw error;
        for (const fault of error.details.fields as FieldFault[])
          faults.set(fault.path.split('.')[0]!, `${fault.path}: ${fault.message}.`);
      }
    }
    const words = { name, hostname, labels: text, faults };
    return showOverview(deps, { visitor, server }, reply, 422, { words });
  });

  app.post('/servers/:id/destroy', { schema: { params: Id } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const isMeant = isConfirmed(request.body, server.name);
    const fault = isMeant
      ? await faultOf(() => deps.servers.destroyServer(visitor.actor, null, server.id))
      : `Nothing was destroyed: the name typed is not ${server.name}.`;
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=destroy`, 303);
    return showOverview(deps, { visitor, server }, reply, isMeant ? 409 : 422, { confirmError: fault });
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
  const [traffic, attacks, findings] = await Promise.all([
    deps.protectTraffic.readLatest(visitor.actor, ids),
    deps.protectIncidents.readOpen(visitor.actor, ids),
    deps.protectFindings.countOf(visitor.actor, ids),
  ]);
  const url = withQuery('/client/', query);
  const last = servers.at(-1);
  const nextHref =
    found.length > pageSize && last ? withQuery(url, { after: `${last.id}.${last.name}` }) : undefined;
  const nowMs = deps.clock.nowMs();
  return sendPage(
    reply,
    serversPage({
      visitor,
      servers,
      tenants,
      counts,
      query,
      url,
      total,
      nextHref,
      traffic,
      attacks,
      findings,
      nowMs,
    }),
  );
}

async function showOverview(
  deps: ServerPagesDeps,
  { visitor, server }: Pick<OverviewOptions, 'visitor' | 'server'>,
  reply: FastifyReply,
  status: number,
  state: Pick<OverviewOptions, 'toast' | 'words' | 'confirmError'>,
): Promise<FastifyReply> {
  const { actor } = visitor;
  const [actions, latest, history, attacks, counts] = await Promise.all([
    deps.servers.listActions(actor, null, server.id, 10),
    deps.protectTraffic.readLatest(actor, [server.id]),
    deps.bandwidth.readHistory(actor, null, server.id, { granularity: 'month' }),
    deps.protectIncidents.readOpen(actor, [server.id]),
    deps.protectFindings.countOf(actor, [server.id]),
  ]);
  const traffic = { latest: latest.get(server.id), month: history?.current };
  const attack = attacks.get(server.id);
  const findings = counts.get(server.id);
  const nowMs = deps.clock.nowMs();
  const page = { visitor, server, actions, traffic, attack, findings, nowMs, ...state };
  return sendPage(reply, overviewPage(page), status);
}

/** `key=value`, one a line; labels that are not there any more are taken away. Null when a line is none. */
function readLabels(
  text: string,
  before: Readonly<Record<string, string>>,
): Record<string, string | null> | null {
  const labels: Record<string, string | null> = Object.fromEntries(
    Object.keys(before).map((key) => [key, null]),
  );
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const at = line.indexOf('=');
    if (at === 0) return null;
    labels[at < 0 ? line : line.slice(0, at).trim()] = at < 0 ? '' : line.slice(at + 1).trim();
  }
  return labels;
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
