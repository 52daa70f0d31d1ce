import { Discovery } from '#contracts/admin-api/schemas.ts';
import { capabilitiesOf, type FeedReceiver } from '#operations/feeds/index.ts';
import type { App } from '#service-kit/http/index.ts';

/** `GET /discovery/`: what this project may do, and in which version of each contract (NET-4.l). */
export function registerDiscovery(app: App, deps: { receivers: readonly FeedReceiver[] }): void {
  app.get('/discovery/', { schema: { response: { 200: Discovery } } }, async (request) => {
    const { id, name, permissions } = request.adminProject!;
    return { project: { id, name }, capabilities: { ...capabilitiesOf(deps.receivers, permissions) } };
  });
}
