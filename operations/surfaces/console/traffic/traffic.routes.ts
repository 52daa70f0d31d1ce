/** `/console/traffic/`: the traffic of all customers and servers, for staff. */
import { exploredDimensions, filterDimensions } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type ExplorerDeps, type ExplorerPlace, registerExplorer } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import { trafficPath } from './traffic-link.ts';

const place: ExplorerPlace = {
  path: trafficPath,
  dimensions: exploredDimensions,
  filters: filterDimensions,
  defaultRange: '24h',
  example: 'customer:acme port:443 -server:web-1',
  flowColumns: ['customer', 'server', 'app'],
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
        breadcrumb: [{ label: title }],
        toast: text === null ? undefined : { tone: 'good', text },
      },
      content,
    ),
  hrefOf: ({ serverId, tenantId }) => {
    if (serverId !== null) return `/console/servers/${serverId}`;
    return tenantId === null ? null : `/console/customers/${tenantId}`;
  },
};

export function registerTraffic(app: App, deps: ExplorerDeps): void {
  registerExplorer(app, deps, place, '/console');
}
