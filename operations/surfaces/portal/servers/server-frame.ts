import type { FastifyRequest } from 'fastify';
import { type Servers, statusOf } from '#operations/servers/index.ts';
import type { Server, ServerStatus } from '#operations/views/server-store.ts';
import { badge, type Content, type Html, type Tone, tabs } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';

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

const tabLabels = {
  overview: 'Overview',
  traffic: 'Traffic',
  protect: 'Protect',
  networks: 'Networks',
  firewall: 'Firewall',
  settings: 'Settings',
} as const;
type ServerTab = keyof typeof tabLabels;

const crumbsOf = (href: string, tab: ServerTab, part: string | undefined) =>
  part === undefined ? [{ label: tabLabels[tab] }] : [{ label: tabLabels[tab], href }, { label: part }];

/** A page about one server, with its tabs. */
export function serverFrame(
  options: {
    visitor: Visitor;
    server: Server;
    tab: ServerTab;
    /** The page below the tab, where there is one. */
    part?: string;
    toast?: { tone: Tone; text: Content } | undefined;
  },
  header: Content,
  content: Content,
): Html {
  const { server, tab, visitor, part } = options;
  const path = `/client/servers/${server.id}`;
  const isOverview = tab === 'overview' && part === undefined;
  return portalFrame(
    {
      visitor,
      title: isOverview ? server.name : `${server.name}, ${part ?? tabLabels[tab]}`,
      current: 'servers',
      breadcrumb: [
        { label: 'Servers', href: '/client/' },
        isOverview ? { label: server.name } : { label: server.name, href: path },
        ...(isOverview
          ? []
          : tab === 'overview'
            ? [{ label: part! }]
            : crumbsOf(`${path}/${tab}`, tab, part)),
      ],
      toast: options.toast,
    },
    [
      header,
      tabs(
        `Pages of ${server.name}`,
        Object.entries(tabLabels).map(([name, label]) => ({
          label,
          href: name === 'overview' ? path : `${path}/${name}`,
          current: name === tab,
        })),
      ),
      content,
    ],
  );
}

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
