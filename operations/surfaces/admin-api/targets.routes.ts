import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import { TargetsPage } from '#contracts/admin-api/schemas.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import { type FeedReceiver, listTargetPermissions } from '#operations/feeds/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { clusterScope, requireProject } from './authenticate.ts';
import { PageQuery, readPageQuery } from './page-query.ts';

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
