import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { faultOf } from '../networks/network-frame.ts';
import { findServerOf } from './guard-server.ts';
import { type ServerNetworksOptions, serverNetworksPage } from './server-networks.page.ts';

export interface ServerNetworksDeps {
  servers: Servers;
  networks: Networks;
  clock: Clock;
}

const Id = Type.Object({ id: Type.String() });
const AttachForm = Type.Object({
  network: Type.String(),
  ip: Type.Optional(Type.String({ maxLength: 300 })),
});
const DetachForm = Type.Object({ network: Type.String() });
const listMax = 500;

const outcomes: Record<string, string> = {
  attach: 'The server is being attached.',
  detach: 'The server is being detached.',
};

export function registerServerNetworks(app: App, deps: ServerNetworksDeps): void {
  app.get(
    '/servers/:id/networks',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const text = outcomes[request.query.done ?? ''];
      return show(deps, request, reply, 200, text === undefined ? {} : { toast: { tone: 'info', text } });
    },
  );

  app.post(
    '/servers/:id/networks/attach',
    { schema: { params: Id, body: AttachForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { network, ip = '' } = request.body;
      const fault = await faultOf(() =>
        deps.networks.attachServer(visitor.actor, server.tenantId, {
          serverId: server.id,
          networkId: Number(network),
          ip: ip.trim() === '' ? undefined : ip.trim(),
        }),
      );
      if (fault !== null) return show(deps, request, reply, 422, { refused: { fault, network, ip } });
      return reply.redirect(`/client/servers/${server.id}/networks?done=attach`, 303);
    },
  );

  app.post(
    '/servers/:id/networks/detach',
    { schema: { params: Id, body: DetachForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const input = { serverId: server.id, networkId: Number(request.body.network) };
      const fault = await faultOf(() => deps.networks.detachServer(visitor.actor, server.tenantId, input));
      if (fault !== null)
        return show(deps, request, reply, 409, { toast: { tone: 'bad', text: fault.message } });
      return reply.redirect(`/client/servers/${server.id}/networks?done=detach`, 303);
    },
  );
}

async function show(
  deps: ServerNetworksDeps,
  request: FastifyRequest<{ Params: { id: string } }>,
  reply: FastifyReply,
  status: number,
  state: Pick<ServerNetworksOptions, 'toast' | 'refused'>,
): Promise<FastifyReply> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const networks = await deps.networks.listNetworks(visitor.actor, server.tenantId, { limit: listMax });
  const joined = new Set(server.privateNetworks.map((nic) => nic.networkId));
  const candidates = networks.filter(
    (network) => network.locationId === server.locationId && !joined.has(network.id),
  );
  const nowMs = deps.clock.nowMs();
  return sendPage(reply, serverNetworksPage({ visitor, server, candidates, nowMs, ...state }), status);
}
