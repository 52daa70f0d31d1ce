import { randomUUID } from 'node:crypto';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { password } from '#operations/testing/create-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import { form, type Stage } from './audit-stage.ts';

/** A finding's place in the portal. */
async function findingOf({ found }: Pick<Stage, 'found'>) {
  const { serverId, finding } = await found();
  const { address, transport, port, cve_id, fingerprint } = finding;
  return {
    ':id': serverId,
    ':address': address,
    ':service': `${transport}-${port}`,
    ':cve': cve_id,
    fingerprint,
  };
}

/** A plan that servers can be resized to. */
export async function largePlan({ world }: Stage): Promise<string> {
  const slug = 'large';
  await ensurePlan(world.database.db, {
    ...{ slug, name: 'Large', vcpus: 2, memoryMb: 4_096, diskGb: 80 },
    ...{ hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
  return slug;
}

/** A server, with an image that it can be rescued with. */
export async function rescuable({ world, server }: Stage) {
  await ensureImage(world.database.db, { slug: 'rescue', name: 'Rescue', family: 'debian', kind: 'rescue' });
  return { ':id': await server() };
}

/** A server, with an ISO for it. */
export async function withIso({ world, server }: Stage) {
  await ensureImage(world.database.db, { slug: 'tools', name: 'Tools', family: 'windows', kind: 'iso' });
  return { ':id': await server() };
}

/** A delivery that can be replayed. */
export async function finishedDelivery({ endpoint, world, actor }: Stage) {
  const endpointId = await endpoint();
  const deliveryId = await world.webhooks.sendTest(await actor(), endpointId);
  await world.database.pool.query(
    "update webhook_deliveries set status = 'failed', finished_at = svc_now() where id = $1",
    [deliveryId],
  );
  return { endpointId, deliveryId };
}

/** A firewall rule as forms and the API say it. */
export const rule = { direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' };

/** The routes of the customer portal, each with a request that changes something. */
export const portalCases = Object.fromEntries([
  form('POST /client/servers/new', 'server.create', ({ tenant, next }) => ({
    // An order like one of just now would be taken for the same.
    ...{ tenant: tenant.id, plan: 'small', image: 'debian-12', location: 'fra', name: `ordered-${next()}` },
    form_id: randomUUID(),
  })),
  form('POST /client/servers/:id/actions', 'server.stop', async ({ server }) => ({
    ':id': await server(),
    action: 'stop',
  })),
  form('POST /client/servers/:id/rebuild', 'server.rebuild', async ({ server, next }) => {
    const name = `rebuilt-${next()}`;
    return { ':id': await server(name), image: 'debian-12', confirm_name: name };
  }),
  form('POST /client/servers/:id/reset-password', 'server.reset_password', async ({ server }) => ({
    ':id': await server(),
  })),
  form('POST /client/servers/:id/rescue', 'server.rescue', rescuable),
  form('POST /client/servers/:id/unrescue', 'server.unrescue', rescuable),
  form('POST /client/servers/:id/attach-iso', 'server.attach_iso', async (stage) => ({
    ...(await withIso(stage)),
    iso: 'tools',
  })),
  form('POST /client/servers/:id/detach-iso', 'server.detach_iso', withIso),
  form('POST /client/servers/:id/console', 'server.open_console', async ({ server }) => ({
    ':id': await server(),
  })),
  form('POST /client/servers/:id/resize', 'server.resize', async (stage) => ({
    ...{ ':id': await stage.server(), plan: await largePlan(stage), on_timeout: 'fail' },
  })),
  form('POST /client/servers/:id/snapshots', 'server.create_snapshot', async ({ server }) => ({
    ...{ ':id': await server(), name: 'audited' },
  })),
  form('POST /client/servers/:id/snapshots/restore', 'server.restore_snapshot', async ({ snapshot }) => {
    const { serverId, serverName, id } = await snapshot();
    return { ':id': serverId, snapshot: id, confirm_name: serverName };
  }),
  form('POST /client/servers/:id/snapshots/delete', 'server.delete_snapshot', async ({ snapshot }) => {
    const { serverId, id } = await snapshot();
    return { ':id': serverId, snapshot: id };
  }),
  form('POST /client/servers/:id/words', 'server.describe', async ({ server }) => ({
    ...{ ':id': await server(), name: 'new', hostname: 'new', labels: '' },
  })),
  form('POST /client/servers/:id/protect/settings', 'protect.change_settings', async ({ server }) => ({
    ':id': await server(),
    views: 'off',
  })),
  form(
    'POST /client/servers/:id/protect/findings/:address/:service/:cve/ignore',
    'protect.ignore_finding',
    async (stage) => ({ ...(await findingOf(stage)), reason: 'audited', days: '30' }),
  ),
  form('POST /client/servers/:id/protect/findings/ignore', 'protect.ignore_finding', async (stage) => {
    const of = await findingOf(stage);
    const finding = [of[':address'], of[':service'], of[':cve'], of.fingerprint].join(' ');
    return { ':id': of[':id'], finding, reason: 'audited', days: '30' };
  }),
  form(
    'POST /client/servers/:id/protect/findings/:address/:service/:cve/end-ignore',
    'protect.end_ignore',
    async (stage) => {
      const of = await findingOf(stage);
      const path = `/client/servers/${of[':id']}/protect/findings/${of[':address']}/${of[':service']}/${of[':cve']}`;
      const { fingerprint } = of;
      await stage.setUp.owned.post(`${path}/ignore`, { reason: 'audited', days: '', fingerprint });
      return of;
    },
  ),
  form('POST /client/servers/:id/protect/scan', 'protect.request_port_scan', async ({ server }) => ({
    ':id': await server(),
  })),
  form('POST /client/servers/:id/destroy', 'server.destroy', async ({ server, next }) => {
    const name = `gone-${next()}`;
    return { ':id': await server(name), confirm_name: name };
  }),
  form('POST /client/servers/:id/networks/attach', 'network.attach_server', async ({ server, network }) => ({
    ':id': await server(),
    network: (await network()).id,
  })),
  form('POST /client/servers/:id/networks/detach', 'network.detach_server', async ({ attached }) => {
    const { serverId, networkId } = await attached();
    return { ':id': serverId, network: networkId };
  }),
  form('POST /client/billing/cards/test', 'card.add', ({ tenant }) => ({
    tenant: tenant.id,
    number: '4242424242424242',
  })),
  form('POST /client/billing/cards/return', 'card.add', ({ tenant }) => ({
    tenant: tenant.id,
    setup: '4242424242424242',
  })),
  form('POST /client/billing/cards/default', 'card.make_default', async ({ tenant, world }) => ({
    tenant: tenant.id,
    card: await world.saveCard(tenant),
  })),
  form('POST /client/billing/cards/remove', 'card.remove', async ({ tenant, world }) => ({
    tenant: tenant.id,
    card: await world.saveCard(tenant, '5555555555554444'),
  })),
  form('POST /client/billing/credit', 'credit.charge', async ({ tenant, world }) => {
    await world.saveCard(tenant);
    return { tenant: tenant.id, amount: '10.00', form_id: randomUUID() };
  }),
  form(
    'POST /client/billing/used-up',
    'bandwidth.choose_when_used_up',
    async ({ tenant, chargeWhenUsedUp }) => {
      await chargeWhenUsedUp();
      return { tenant: tenant.id, when_used_up: 'limit' };
    },
  ),
  form('POST /client/settings/organization', 'organization.rename', ({ tenant, next }) => ({
    organization: tenant.organizationId,
    name: `Renamed ${next()}`,
  })),
  form('POST /client/settings/workspaces', 'tenant.create', ({ tenant, next }) => ({
    organization: tenant.organizationId,
    name: `Second ${next()}`,
  })),
  form('POST /client/settings/invitations', 'invitation.create', ({ tenant, next }) => ({
    organization: tenant.organizationId,
    email: `invited-${next()}@audited.test`,
  })),
  form('POST /client/settings/invitations/revoke', 'invitation.revoke', async ({ world, tenant, next }) => {
    const email = `revoked-${next()}@audited.test`;
    const { id } = await world.accounts.inviteMember(systemActor, tenant.organizationId, email);
    return { organization: tenant.organizationId, invitation: id };
  }),
  form('POST /client/settings/members/remove', 'organization.remove_member', async ({ tenant, member }) => ({
    organization: tenant.organizationId,
    person: (await member()).id,
  })),
  form(
    'POST /client/settings/profile',
    ['tenant.set_billing_profile', 'tenant.rename'],
    ({ tenant, next }) => ({
      ...{ tenant: tenant.id, tenant_name: `Workspace ${next()}`, legal_name: 'Audited Ltd' },
      ...{ email: 'billing@audited.test', country: 'DE' },
    }),
  ),
  form('POST /client/account/password', 'person.change_password', { current: password, next: password }),
  form('POST /client/account/sessions/end', 'session.end_one', async ({ world, owner, email }) => {
    await world.signIn(email);
    return { session: (await world.sessions.list(owner.id, undefined))[0]!.id };
  }),
  form('POST /client/account/sessions/end-others', 'session.end_others'),
  form('POST /client/developer/', 'key.create', ({ next }) => ({ name: `key ${next()}`, scope: 'read' })),
  form('POST /client/developer/rotate', 'key.rotate', async ({ keyId }) => ({ key_id: await keyId() })),
  form('POST /client/developer/narrow', 'key.narrow', async ({ keyId, tenant }) => ({
    key_id: await keyId(),
    tenants: tenant.id,
  })),
  form('POST /client/developer/revoke', 'key.revoke', async ({ keyId }) => ({ key_id: await keyId() })),
  form('POST /client/developer/ssh-keys/', 'ssh_key.create', ({ tenant, next }) => ({
    tenant: tenant.id,
    name: `ssh ${next()}`,
    public_key: examplePublicKey(next()),
  })),
  form('POST /client/developer/ssh-keys/delete', 'ssh_key.delete', async ({ sshKey, tenant }) => ({
    key: await sshKey(),
    tenant: tenant.id,
  })),
  form('POST /client/networks/', 'network.create', ({ tenant, next }) => ({
    ...{ tenant: tenant.id, name: `net-${next()}`, location: 'fra' },
  })),
  form('POST /client/networks/:id', 'network.update', async ({ network }) => ({
    ...{ ':id': (await network()).id, name: 'renamed', description: 'x' },
  })),
  form('POST /client/networks/:id/sync', 'network.sync', async ({ network }) => ({
    ':id': (await network()).id,
  })),
  form('POST /client/networks/:id/attach', 'network.attach_server', async ({ network, server }) => ({
    ':id': (await network()).id,
    server: await server(),
  })),
  form('POST /client/networks/:id/detach', 'network.detach_server', async ({ attached }) => {
    const { serverId, networkId } = await attached();
    return { ':id': networkId, server: serverId };
  }),
  form('POST /client/networks/:id/delete', 'network.delete', async ({ network }) => {
    const { id, name } = await network();
    return { ':id': id, confirm_name: name };
  }),
  form('POST /client/addresses/', 'address.reserve', ({ tenant }) => ({
    ...{ tenant: tenant.id, what: '4', location: 'fra' },
  })),
  form('POST /client/addresses/attach', 'server.attach_address', async ({ address, server }) => ({
    address: await address(),
    server: await server(),
  })),
  form('POST /client/addresses/detach', 'server.detach_address', async ({ address, server }) => ({
    address: await address(await server()),
  })),
  form('POST /client/addresses/release', 'address.release', async ({ address }) => ({
    address: await address(),
  })),
  form('POST /client/servers/:id/reverse-dns', 'server.set_reverse_dns', async ({ named }) => {
    const { serverId, address } = await named();
    return { ':id': serverId, address, name: 'other.example.org', force: 'yes' };
  }),
  form('POST /client/servers/:id/firewall/switch', 'firewall.switch', async ({ filtered }) => ({
    ...(await filtered()),
    enabled: 'yes',
  })),
  form('POST /client/servers/:id/firewall/policies', 'firewall.policies', async ({ filtered }) => ({
    ...{ ...(await filtered()), inbound: 'drop', outbound: 'accept' },
  })),
  form('POST /client/servers/:id/firewall/remove', 'firewall.remove', ({ filtered }) => filtered()),
  form('POST /client/servers/:id/firewall/move', 'firewall.move', async ({ filtered }) => ({
    ...(await filtered()),
    by: '1',
  })),
  form('POST /client/servers/:id/firewall/add', 'firewall.add', async ({ filtered }) => ({
    ...(await filtered()),
    ...rule,
  })),
  form('POST /client/servers/:id/firewall/edit', 'firewall.edit', async ({ filtered, setUp }) => {
    const of = await filtered();
    const page = await setUp.owned.page(`/client/servers/${of[':id']}/firewall?edit=${of.rule}`);
    return { ...of, ...rule, action: 'drop', seen: /name="seen" value="([^"]+)"/.exec(page)![1]! };
  }),
  form('POST /client/developer/webhooks/', 'webhook.create', ({ tenant }) => ({
    scope: `organization:${tenant.organizationId}`,
    ...{ url: 'http://127.0.0.1:9/new', events: 'key.created' },
  })),
  form('POST /client/developer/webhooks/:id', 'webhook.update', async ({ endpoint }) => ({
    ...{ ':id': await endpoint(), url: 'http://127.0.0.1:9/changed', events: 'key.revoked' },
  })),
  form('POST /client/developer/webhooks/:id/delete', 'webhook.delete', async ({ endpoint }) => ({
    ...{ ':id': await endpoint(), confirm_name: '127.0.0.1:9' },
  })),
  ...(['enable', 'disable', 'test', 'rotate'] as const).map((verb) =>
    form(
      `POST /client/developer/webhooks/:id/${verb}`,
      verb === 'rotate' ? 'webhook.rotate_secret' : `webhook.${verb}`,
      async ({ endpoint }) => ({ ':id': await endpoint() }),
    ),
  ),
  form('POST /client/developer/webhooks/:id/replay', 'webhook.replay', async (stage) => {
    const { endpointId, deliveryId } = await finishedDelivery(stage);
    return { ':id': endpointId, delivery: deliveryId };
  }),
]);
