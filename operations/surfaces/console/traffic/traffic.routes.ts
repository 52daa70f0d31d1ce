/** `/console/traffic/`: the traffic of all customers and servers, for staff. */
import type { FastifyRequest } from 'fastify';
import type { Actor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { staffBox } from '#operations/protect/index.ts';
import type { ServerEvent } from '#operations/views/event-store.ts';
import type { App } from '#service-kit/http/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import { type ExplorerSurface, type PeerLink, registerExplorer } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import { readMonitorLink, trafficPath } from '../links.ts';

/** Attacks and scans have no page of their own, so their flags lead to lists of the server's. The console lists no daily scans. */
function eventHref({ kind, name, serverId }: ServerEvent): string | undefined {
  switch (kind) {
    case 'attack':
      return `/console/attacks/?server=${serverId}`;
    case 'scan':
      return name === 'routine' ? undefined : `/console/port-scans/?server=${serverId}`;
    default:
      return `/console/servers/${serverId}`;
  }
}

export const place: ExplorerSurface = {
  ...{ path: trafficPath, files: trafficPath },
  box: staffBox,
  defaultRange: '24h',
  example: 'customer:acme port:443 -server:web-1',
  flowColumns: ['customer', 'server', 'application'],
  whoOf: (request) => {
    const { actor, csrfToken, canChange } = request.staff!;
    return { actor, csrfToken, canSave: canChange, canShare: canChange };
  },
  frame: (request, title, text, content) =>
    consoleFrame(
      {
        staff: request.staff!,
        title,
        current: 'traffic',
        toast: text === null ? undefined : { tone: 'good', text },
      },
      content,
    ),
  eventHref,
  hrefOf: ({ serverId, customerId }) => {
    if (serverId !== null) return `/console/servers/${serverId}`;
    return customerId === null ? null : `/console/customers/${customerId}`;
  },
};

export function registerTraffic(app: App, deps: Features & { signOn: SignOn<Actor> }): void {
  registerExplorer(
    app,
    deps,
    { ...place, readPeerLink: (request) => readPeerLink(deps.signOn, request) },
    '/console',
  );
}

/** Peers are the monitor's to show: operations does not hold them. */
async function readPeerLink(signOn: SignOn<Actor>, request: FastifyRequest): Promise<PeerLink> {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  const shown = { ...(range && { range }), ...(from && { from }), ...(to && { to }) };
  const inMonitor = await readMonitorLink(signOn);
  return ({ value, label, details }, dimension, { reached }) => {
    const options = { kind: 'quiet', about: label, range: shown } as const;
    switch (dimension) {
      case 'address':
        return value !== null && inMonitor({ kind: 'address', address: value }, options);
      case 'server': {
        const server = reached.find(({ id }) => id === details?.serverId);
        return (
          server && inMonitor({ kind: 'server', clusterId: server.clusterId, serverId: server.id }, options)
        );
      }
      case 'customer':
        return (
          details?.customerId != null &&
          inMonitor({ kind: 'customer', accountId: details.customerId }, options)
        );
      default:
        return '';
    }
  };
}
