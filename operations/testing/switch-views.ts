/** The customer's switch of protection views, as its owner uses it. */
import type { Person, Tenant } from '#operations/accounts/index.ts';
import type { World } from './create-world.ts';

/** Switches the protection views of a server; alerts stay on. */
export function switchViews(
  world: World,
  { owner, tenant }: { owner: Person; tenant: Tenant },
  serverId: number,
  viewsOn: boolean,
): Promise<void> {
  return world.protectSettings.change(
    {
      kind: 'customer',
      personId: owner.id,
      keyId: null,
      tenantIds: [tenant.id],
      ownedOrganizationIds: [tenant.organizationId],
      canWrite: true,
    },
    serverId,
    {
      viewsOn,
      attackMail: true,
      attackWebhook: true,
      portMail: false,
      portWebhook: false,
      findingMail: 'off',
      findingWebhook: false,
    },
  );
}
