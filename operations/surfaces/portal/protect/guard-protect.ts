import type { FastifyRequest } from 'fastify';
import type { Features } from '#operations/features.ts';
import type { ProtectSettings } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { findServerOf } from '../servers/server-frame.ts';

export interface ProtectedServer {
  visitor: Visitor;
  server: Server;
  subject: { serverId: number; tenantId: number };
  settings: ProtectSettings;
}

type ServerRequest = FastifyRequest<{ Params: { id: string } }>;

/** The server of `/client/servers/:id/protect…` with its settings; the portal's 404 for any other. */
export async function findSettingsOf(deps: Features, request: ServerRequest): Promise<ProtectedServer> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const subject = { serverId: server.id, tenantId: server.tenantId };
  return { visitor, server, subject, settings: await deps.protectSettings.find(visitor.actor, subject) };
}

/** The same, and the 404 while the protection views of the server are off (NET-1.6). */
export async function findProtectedOf(deps: Features, request: ServerRequest): Promise<ProtectedServer> {
  const found = await findSettingsOf(deps, request);
  if (!found.settings.viewsOn) throw noSuchPage();
  return found;
}
