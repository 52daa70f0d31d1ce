import { advertised } from '#contracts/admin-api/contract.ts';
import { Discovery, inventoryContract, minutesContract } from '#contracts/admin-api/schemas.ts';
import type { App } from '#service-kit/http/index.ts';

/** Contracts that this server speaks: a permission whose endpoint is not there is not advertised. */
const spoken = [inventoryContract, minutesContract];

/** `GET /discovery/`: what this project may do, and in which version of each contract (NET-4.l). */
export function registerDiscovery(app: App): void {
  app.get('/discovery/', { schema: { response: { 200: Discovery } } }, async (request) => {
    const project = request.adminProject!;
    const allowed = spoken.filter(({ permission }) => project.permissions.includes(permission));
    return {
      project: { id: project.id, name: project.name },
      capabilities: Object.assign({}, ...allowed.map(advertised)),
    };
  });
}
