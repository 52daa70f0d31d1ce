import { Type } from 'typebox';
import {
  InventoryChangesPage,
  inventoryChangesLimitDefault,
  inventoryChangesLimitMax,
  inventoryChangesPath,
} from '#contracts/admin-api/inventory-changes.ts';
import { inventoryContract } from '#contracts/admin-api/schemas.ts';
import type { ServerChanges } from '#operations/server-changes/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { clusterScope, requireProject } from './authenticate.ts';

const Query = Type.Object(
  {
    after: Type.Optional(
      Type.String({ pattern: '^(0|[1-9][0-9]{0,14})$', description: '`next_after` of the page before' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: inventoryChangesLimitMax })),
  },
  { additionalProperties: false },
);

/**
 * `GET /inventory/changes/`: firewalls that took effect, networks that were attached or detached, restarts, of servers of the
 * project's clusters. Each page goes on at the cursor of the one before, also a day later.
 */
export function registerInventoryChanges(app: App, deps: { serverChanges: ServerChanges }): void {
  app.get(
    inventoryChangesPath,
    { schema: { querystring: Query, response: { 200: InventoryChangesPage } } },
    async (request) => {
      const project = requireProject(request, inventoryContract.permission);
      const { after = '0', limit = inventoryChangesLimitDefault } = request.query;
      const page = await deps.serverChanges.list({ after: Number(after), limit, ...clusterScope(project) });
      return {
        changes: page.changes.map((change) => ({
          id: change.id,
          cluster_id: change.clusterId,
          virtual_machine_id: change.serverId,
          kind: change.kind,
          at: change.occurredAt.toISOString(),
        })),
        next_after: String(page.nextAfter),
        has_more: page.hasMore,
      };
    },
  );
}
