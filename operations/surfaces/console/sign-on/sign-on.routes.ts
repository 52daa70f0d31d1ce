/** Single sign-on with the monitor: its settings, and the pages of a sign-on for staff. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { emptyState, pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { registerSignOnPages, registerSignOnSettings } from '#service-kit/sign-on/index.ts';
import { consoleFrame } from '../frame.ts';

/** `/console/sign-on/`. */
export function registerSignOnConsole(app: App, { accounts, signOn, clock }: Features): void {
  registerSignOnSettings<Actor>(app, {
    ...{ path: '/sign-on', base: '/console/sign-on', other: 'the monitor', signOn, clock, visitorOf },
    async listOperators(actor) {
      return (await accounts.listStaff(actor)).filter(({ isActive }) => isActive);
    },
    send(request, reply, { title, content, toast: text, status }) {
      const toast = text === undefined ? undefined : { tone: 'good' as const, text };
      const frame = { staff: request.staff!, title, current: 'sign-on', toast } as const;
      return sendPage(reply, consoleFrame(frame, content), status);
    },
  });
}

/** `/sign-on/ask` and `/sign-on/link`, in a scope that the console's guard watches over. */
export function registerStaffSignOn(app: App, { signOn, sessions, post }: Features): void {
  registerSignOnPages<Actor>(app, {
    ...{ area: 'Operations', home: '/console/', signOn, sessions, post, visitorOf },
  });
}

function visitorOf(request: FastifyRequest) {
  const { actor, person, csrfToken, canChange } = request.staff!;
  return { actor, person, csrfToken, canChange };
}

const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
/** More than the addresses that hold another one as the beginning of their text, such as 192.0.2.1 and 192.0.2.1xx. */
const similarMax = 300;

/**
 * `/find/…`: the console's pages of what the monitor links to, by what both programs know. What is not found is answered
 * alike, whether it never was or is gone.
 */
export function registerFind(app: App, { accounts, servers, protectIncidents }: Features): void {
  const ServerQuery = Type.Object({ cluster_id: Id, server_id: Id });
  app.get('/find/server', { schema: { querystring: ServerQuery } }, async (request, reply) => {
    const { cluster_id: clusterId, server_id: serverId } = request.query;
    const server = await servers.findServer(request.staff!.actor, null, serverId);
    if (server?.clusterId !== clusterId)
      return notFound(request, reply, 'This server does not exist here, or it was destroyed.');
    return reply.redirect(`/console/servers/${server.id}`, 303);
  });

  const AddressQuery = Type.Object({ address: Type.String({ maxLength: 64 }) });
  app.get('/find/address', { schema: { querystring: AddressQuery } }, async (request, reply) => {
    const address = canonicalAddress(request.query.address);
    const filter = { order: 'newest', limit: similarMax, search: address ?? '' } as const;
    const found = address === null ? [] : await servers.listServers(request.staff!.actor, null, filter);
    const server = found.find((each) => each.addresses.some((one) => one.address === address));
    if (!server) return notFound(request, reply, 'No server has this public address now.');
    return reply.redirect(`/console/servers/${server.id}`, 303);
  });

  const CustomerQuery = Type.Object({ account_id: Id });
  app.get('/find/customer', { schema: { querystring: CustomerQuery } }, async (request, reply) => {
    const tenant = await accounts.findTenant(request.query.account_id);
    if (!tenant) return notFound(request, reply, 'This customer does not exist here.');
    return reply.redirect(`/console/customers/${tenant.id}`, 303);
  });

  const IncidentQuery = Type.Object({
    incident_id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  });
  app.get('/find/incident', { schema: { querystring: IncidentQuery } }, async (request, reply) => {
    const asked = { id: request.query.incident_id, limit: 1 };
    const [attack] = await protectIncidents.listAll(request.staff!.actor, asked);
    if (!attack) {
      const text =
        'No server of a customer had this attack, or the monitor has not delivered it yet. Attacks on whole networks are not delivered.';
      return notFound(request, reply, text);
    }
    const severity = attack.severity === 'info' ? '&severity=info' : '';
    return reply.redirect(`/console/attacks/?server=${attack.serverId}${severity}`, 303);
  });
}

function notFound(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  const title = 'Not found in this console';
  const page = consoleFrame(
    { staff: request.staff!, title, current: 'servers', breadcrumb: [{ label: title }] },
    [
      pageHeader({ title }),
      emptyState({
        title: 'The monitor links to something that this console does not have',
        text,
        action: { label: 'All servers', href: '/console/servers/' },
      }),
    ],
  );
  return sendPage(reply, page, 404);
}
