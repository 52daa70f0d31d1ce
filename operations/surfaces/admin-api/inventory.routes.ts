import { InventoryPage } from '#contracts/admin-api/schemas.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { clusterScope, requireProject } from './authenticate.ts';
import { PageQuery, readPageQuery } from './page-query.ts';

/**
 * `GET /inventory/vms/`: the living servers of the project's clusters, with their network interfaces and addresses.
 *
 * `as_of` is taken before the rows are read, so that a destroy notice can be told to be newer than a page.
 */
export function registerInventory(app: App, deps: { servers: Servers }): void {
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
