/** The former Bandwidth tab: its usage is below the Traffic tab. */
import { Type } from 'typebox';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { findServerOf } from './guard-server.ts';

const Query = Type.Object({ by: Type.Optional(Type.String()) });

export function registerBandwidth(app: App, deps: { servers: Servers }): void {
  app.get(
    '/servers/:id/bandwidth',
    { schema: { params: Type.Object({ id: Type.String() }), querystring: Query } },
    async (request, reply) => {
      const { server } = await findServerOf(deps.servers, request);
      const query = request.query.by === 'month' ? '?use=month' : '';
      return reply.redirect(`/client/servers/${server.id}/traffic/usage${query}`, 303);
    },
  );
}
