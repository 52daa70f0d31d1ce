import type { FastifyRequest } from 'fastify';
import type { Servers } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';

/** The server of `/client/servers/:id…`; throws the portal's 404 for any other, also for another customer's. */
export async function findServerOf(
  servers: Servers,
  request: FastifyRequest<{ Params: { id: string } }>,
): Promise<{ visitor: Visitor; server: Server }> {
  const visitor = request.visitor!;
  const { id } = request.params;
  // Only the one spelling of an id leads to a page, so that every page has one address.
  if (!/^[1-9]\d{0,15}$/.test(id)) throw noSuchPage();
  const server = await servers.findServer(visitor.actor, null, Number(id));
  if (server === null) throw noSuchPage();
  return { visitor, server };
}
