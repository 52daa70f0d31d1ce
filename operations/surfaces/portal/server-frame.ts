import type { FastifyRequest } from 'fastify';
import { type Server, type Servers, type ServerStatus, statusOf } from '#operations/servers/index.ts';
import { badge, type Content, type Html, tabs, type Tone } from '#service-kit/pages/index.ts';
import { portalFrame } from './frame.ts';
import { noSuchPage, type Visitor } from './guard.ts';

/** The server of `/client/servers/:id…`; throws the portal's 404 for any other, whoever has it. */
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

const statusTones: Record<ServerStatus, Tone> = {
  queued: 'info',
  provisioning: 'info',
  failed: 'bad',
  deleting: 'warn',
  unknown: 'neutral',
  starting: 'info',
  running: 'good',
  stopping: 'info',
  stopped: 'neutral',
  rebooting: 'info',
};

export function statusTone(server: Server): Tone {
  return statusTones[statusOf(server)];
}

export function statusBadge(server: Server): Html {
  return badge(statusTone(server), statusOf(server));
}

/** A page about one server, with its tabs. */
export function serverFrame(
  options: {
    visitor: Visitor;
    server: Server;
    tab: 'overview' | 'protect';
    toast?: { tone: Tone; text: Content } | undefined;
  },
  header: Content,
  content: Content,
): Html {
  const { server, tab, visitor } = options;
  const path = `/client/servers/${server.id}`;
  const isOverview = tab === 'overview';
  return portalFrame(
    {
      visitor,
      title: isOverview ? server.name : `${server.name}, Protect`,
      current: 'servers',
      breadcrumb: [
        { label: 'Servers', href: '/client/' },
        isOverview ? { label: server.name } : { label: server.name, href: path },
        ...(isOverview ? [] : [{ label: 'Protect' }]),
      ],
      toast: options.toast,
    },
    [
      header,
      tabs(`Pages of ${server.name}`, [
        { label: 'Overview', href: path, current: isOverview },
        { label: 'Protect', href: `${path}/protect`, current: tab === 'protect' },
      ]),
      content,
    ],
  );
}
