import { type Static, Type } from 'typebox';
import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import {
  InventoryChangesPage,
  inventoryChangesLimitDefault,
  inventoryChangesLimitMax,
  inventoryChangesPath,
} from '#contracts/admin-api/inventory-changes.ts';
import {
  InventoryPage,
  inventoryContract,
  TargetsPage,
  targetsLimitDefault,
  targetsLimitMax,
} from '#contracts/admin-api/schemas.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Features } from '#operations/features.ts';
import { type FeedReceiver, listTargetPermissions } from '#operations/feeds/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { clusterScope, requireProject } from './authenticate.ts';

/**
 * `GET /inventory/vms/`: the living servers of the project's clusters, with their network interfaces and addresses.
 *
 * `as_of` is taken before the rows are read, so that a destroy notice can be told to be newer than a page.
 */
export function registerInventory(app: App, deps: Features): void {
  app.get(
    '/inventory/vms/',
    { schema: { querystring: PageQuery, response: { 200: InventoryPage } } },
    async (request) => {
      const project = requireProject(request, 'vm_inventory_read');
      const { afterId, limit } = readPageQuery(request.query);
      const page = await deps.servers.listInventory({ afterId, limit, ...clusterScope(project) });
      return {
        vms: page.vms.map((vm) => ({
          id: vm.id,
          cluster_id: vm.clusterId,
          node: vm.node,
          name: vm.name,
          state: vm.state,
          updated_at: vm.updatedAt.toISOString(),
          interfaces: vm.interfaces.map((nic) => ({
            id: nic.id,
            mac_address: nic.macAddress,
            bridge: nic.bridge,
            vlan: nic.vlan,
            addresses: [...nic.addresses],
          })),
        })),
        next_after_id: page.nextAfterId,
        as_of: page.asOf.toISOString(),
      };
    },
  );
}

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
export function registerInventoryChanges(app: App, deps: Features): void {
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

/**
 * `GET /protect/targets/`: the active allocation generations whose traffic may be delivered (NET-2.3).
 *
 * The cursor walks all active allocations and the page is filtered afterwards, so a page may be empty while the cursor
 * moves on; only `next_after_id: null` is the end.
 */
export function registerTargets(
  app: App,
  deps: {
    addresses: Addresses;
    servers: Servers;
    receivers: readonly FeedReceiver[];
    isDocumentationGlobal: boolean;
  },
): void {
  const permissions = listTargetPermissions(deps.receivers);
  app.get(
    '/protect/targets/',
    { schema: { querystring: PageQuery, response: { 200: TargetsPage } } },
    async (request) => {
      const project = requireProject(request, ...permissions);
      const { afterId, limit } = readPageQuery(request.query);
      const page = await deps.addresses.listActiveAllocations({ afterId, limit, ...clusterScope(project) });
      const live = await deps.servers.listLiveIds(page.allocations.map((each) => each.serverId));
      const targets = page.allocations.filter(
        (each) => live.has(each.serverId) && isTarget(each.address, deps.isDocumentationGlobal),
      );
      return {
        targets: targets.map((each) => ({
          id: each.id,
          billing_account_id: each.tenantId,
          virtual_machine_id: each.serverId,
          cluster_id: each.clusterId,
          address: each.address,
          assigned_at: each.assignedAt,
        })),
        next_after_id: page.nextAfterId,
      };
    },
  );
}

function isTarget(address: string, isDocumentationGlobal: boolean): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && isGlobalUnicast(bytes, isDocumentationGlobal);
}

/** `?after_id&limit` of every page: ids after the cursor, in rising order. */
const PageQuery = Type.Object(
  {
    after_id: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: targetsLimitMax })),
  },
  { additionalProperties: false },
);

/** The query with its defaults: from the beginning, 200 at a time. */
function readPageQuery(query: Static<typeof PageQuery>): { afterId: number; limit: number } {
  return { afterId: query.after_id ?? 0, limit: query.limit ?? targetsLimitDefault };
}
