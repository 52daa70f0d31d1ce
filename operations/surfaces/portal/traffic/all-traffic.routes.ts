/** The traffic of all servers of the signed-in person. */
import { customerBox } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { withQuery } from '#service-kit/pages/index.ts';
import { type ExplorerDeps, type ExplorerSurface, registerExplorer } from '../../parts/index.ts';
import { portalFrame } from '../frame.ts';
import { eventHref } from './server-flags.ts';
import { trafficPath } from './traffic-url.ts';

export const allTrafficPath = '/client/traffic/';

const place: ExplorerSurface = {
  ...{ path: allTrafficPath, files: allTrafficPath },
  box: customerBox,
  defaultRange: '1h',
  deploy: { label: 'Deploy a server', href: '/client/servers/new' },
  example: 'server:web-1 port:443 -app:github.com',
  flowColumns: ['server', 'application'],
  whoOf: (request) => ({ ...request.visitor!, canSave: true, canShare: false }),
  frame: (request, title, text, content) =>
    portalFrame(
      {
        visitor: request.visitor!,
        title,
        current: 'traffic',
        breadcrumb: [{ label: title }],
        ...(text === null ? {} : { toast: { tone: 'good', text } }),
      },
      content,
    ),
  eventHref,
  hrefOf: ({ serverId }, range) => (serverId === null ? null : withQuery(trafficPath(serverId), { range })),
};

export function registerAllTraffic(app: App, deps: ExplorerDeps): void {
  registerExplorer(app, deps, place, '/client');
}
