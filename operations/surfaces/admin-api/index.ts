/**
 * The admin API under `/api/admin/v1`: what the monitor asks of operations and delivers to it.
 *
 * A request is authenticated by its `Authorization` header alone, before its body is read. Permissions are looked at on
 * every call, so that an edited project works at once with the token it has. There is no request limit for a valid
 * token (NET-5.2).
 */
import { Discovery } from '#contracts/admin-api/schemas.ts';
import type { AdminProject } from '#operations/admin-projects/index.ts';
import type { Features } from '#operations/features.ts';
import { capabilitiesOf } from '#operations/feeds/index.ts';
import { type App, findUnkeepableTexts, HttpError, unkeepableText } from '#service-kit/http/index.ts';
import { authenticateProject } from './authenticate.ts';
import { registerInventory, registerInventoryChanges, registerTargets } from './inventory.routes.ts';
import { registerReceivers, registerScanRequests } from './receivers.routes.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The project whose token the request carries; set for every route of the admin API. */
    adminProject: AdminProject | null;
  }
}

/** Registers the routes; call it once per server. */
export async function registerAdminApi(
  app: App,
  deps: Features & {
    /** Documentation ranges count as globally routable (lab and demo worlds only). */
    isDocumentationGlobal: boolean;
  },
): Promise<void> {
  app.decorateRequest('adminProject', null);
  await app.register(
    async (scope) => {
      const routes = scope as unknown as App;
      routes.addHook('onRequest', authenticateProject(deps.adminProjects));
      routes.addHook('preHandler', async ({ body }) => {
        const paths = findUnkeepableTexts(body);
        if (paths.length === 0) return;
        throw new HttpError(422, {
          ...{
            code: 'validation_failed',
            reason: 'invalid_fields',
            message: 'Some fields are not as they must be.',
          },
          fields: paths.map((path) => ({ path, code: 'characters', message: unkeepableText })),
        });
      });
      registerDiscovery(routes, deps);
      registerInventory(routes, deps);
      registerInventoryChanges(routes, deps);
      registerTargets(routes, deps);
      registerReceivers(routes, deps);
      registerScanRequests(routes, deps);
    },
    { prefix: '/api/admin/v1' },
  );
}

/** `GET /discovery/`: what this project may do, and in which version of each contract (NET-4.l). */
function registerDiscovery(app: App, deps: Features): void {
  app.get('/discovery/', { schema: { response: { 200: Discovery } } }, async (request) => {
    const { id, name, permissions } = request.adminProject!;
    return { project: { id, name }, capabilities: { ...capabilitiesOf(deps.receivers, permissions) } };
  });
}
