import type { schemas } from '#contracts/customer-api/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Handler } from '../call.ts';
import { pageOf } from '../request-parts.ts';
import { showTenant } from '../views.ts';

/** The workspaces that the key may act on; locked ones are listed too, with the reason that a call would be given. */
export function tenantHandlers(deps: {
  accounts: Accounts;
  billing: Billing;
  networks: Networks;
  servers: Servers;
}): { listTenants: Handler; listMembers: Handler } {
  return {
    async listMembers(call, request, reply) {
      const members = await deps.accounts.membersOf(call.principal.organizationId);
      const { page, pagination } = pageOf(request, reply, members, (member) => member.personId);
      return {
        members: page.map(
          (member): schemas.Member => ({
            id: member.personId,
            name: member.personName,
            email: member.personEmail,
            role: member.role,
            active: member.isActive,
          }),
        ),
        pagination,
      };
    },

    async listTenants(call, request, reply) {
      const { tenants } = call.principal;
      const { page, pagination } = pageOf(request, reply, tenants, (tenant) => tenant.id);
      const ids = page.map((tenant) => tenant.id);
      const [access, servers, networks] = await Promise.all([
        deps.billing.accessOf(ids),
        deps.servers.countOfTenants(ids),
        deps.networks.countOfTenants(ids),
      ]);
      return {
        tenants: page.map((tenant) =>
          showTenant(
            tenant,
            access.get(tenant.id),
            { servers: servers.get(tenant.id) ?? 0, networks: networks.get(tenant.id) ?? 0 },
            tenant === tenants[0],
          ),
        ),
        pagination,
      };
    },
  };
}
