import { randomUUID } from 'node:crypto';
import { systemActor } from '#operations/accounts/index.ts';
import type { Cases } from './case.ts';
import type { Stage } from './stage.ts';

/** The routes of the customer portal, each with a request that changes something. */
export const portalCases: Cases = {
  'POST /client/servers/new': [
    'server.create',
    ({ owned, tenant, next }) =>
      owned.post('/client/servers/new', {
        tenant: String(tenant.id),
        plan: 'small',
        image: 'debian-12',
        location: 'fra',
        // An order like one of just now would be taken for the same.
        name: `ordered-${next()}`,
        form_id: randomUUID(),
      }),
  ],
  'POST /client/servers/:id/actions': [
    'server.stop',
    async ({ owned, server }) => owned.post(`/client/servers/${await server()}/actions`, { action: 'stop' }),
  ],
  'POST /client/servers/:id/words': [
    'server.describe',
    async ({ owned, server }) =>
      owned.post(`/client/servers/${await server()}/words`, { name: 'new', hostname: 'new', labels: '' }),
  ],
  'POST /client/servers/:id/protect/settings': [
    'protect.change_settings',
    async ({ owned, server }) =>
      owned.post(`/client/servers/${await server()}/protect/settings`, { views: 'off' }),
  ],
  'POST /client/servers/:id/protect/findings/:address/:service/:cve/ignore': [
    'protect.ignore_finding',
    async ({ owned, found }) => {
      const { path, fingerprint } = pathOf(await found());
      return owned.post(`${path}/ignore`, { reason: 'audited', days: '30', fingerprint });
    },
  ],
  'POST /client/servers/:id/protect/findings/:address/:service/:cve/end-ignore': [
    'protect.end_ignore',
    async ({ owned, found, setUp }) => {
      const { path, fingerprint } = pathOf(await found());
      await setUp.owned.post(`${path}/ignore`, { reason: 'audited', days: '', fingerprint });
      return owned.post(`${path}/end-ignore`, { fingerprint });
    },
  ],
  'POST /client/servers/:id/protect/scan': [
    'protect.request_port_scan',
    async ({ owned, server }) => owned.post(`/client/servers/${await server()}/protect/scan`, {}),
  ],
  'POST /client/servers/:id/destroy': [
    'server.destroy',
    async ({ owned, server, next }) => {
      const name = `gone-${next()}`;
      return owned.post(`/client/servers/${await server(name)}/destroy`, { confirm_name: name });
    },
  ],
  'POST /client/servers/:id/networks/attach': [
    'network.attach_server',
    async ({ owned, server, network }) =>
      owned.post(`/client/servers/${await server()}/networks/attach`, {
        network: String((await network()).id),
      }),
  ],
  'POST /client/servers/:id/networks/detach': [
    'network.detach_server',
    async ({ owned, attached }) => {
      const { serverId, networkId } = await attached();
      return owned.post(`/client/servers/${serverId}/networks/detach`, { network: String(networkId) });
    },
  ],
  'POST /client/billing/cards/test': [
    'card.add',
    ({ owned, tenant }) =>
      owned.post('/client/billing/cards/test', { tenant: String(tenant.id), number: '4242424242424242' }),
  ],
  'POST /client/billing/cards/return': [
    'card.add',
    ({ owned, tenant }) =>
      owned.post('/client/billing/cards/return', { tenant: String(tenant.id), setup: '4242424242424242' }),
  ],
  'POST /client/billing/cards/default': [
    'card.make_default',
    async ({ owned, tenant, world }) =>
      owned.post('/client/billing/cards/default', {
        tenant: String(tenant.id),
        card: String(await world.saveCard(tenant)),
      }),
  ],
  'POST /client/billing/cards/remove': [
    'card.remove',
    async ({ owned, tenant, world }) =>
      owned.post('/client/billing/cards/remove', {
        tenant: String(tenant.id),
        card: String(await world.saveCard(tenant, '5555555555554444')),
      }),
  ],
  'POST /client/billing/credit': [
    'credit.charge',
    async ({ owned, tenant, world, formId }) => {
      await world.saveCard(tenant);
      return owned.post('/client/billing/credit', {
        tenant: String(tenant.id),
        amount: '10.00',
        form_id: formId(),
      });
    },
  ],
  'POST /client/settings/organization': [
    'organization.rename',
    ({ owned, tenant, next }) =>
      owned.post('/client/settings/organization', {
        organization: String(tenant.organizationId),
        name: `Renamed ${next()}`,
      }),
  ],
  'POST /client/settings/workspaces': [
    'tenant.create',
    ({ owned, tenant, next }) =>
      owned.post('/client/settings/workspaces', {
        organization: String(tenant.organizationId),
        name: `Second ${next()}`,
      }),
  ],
  'POST /client/settings/invitations': [
    'invitation.create',
    ({ owned, tenant, next }) =>
      owned.post('/client/settings/invitations', {
        organization: String(tenant.organizationId),
        email: `invited-${next()}@audited.test`,
      }),
  ],
  'POST /client/settings/invitations/revoke': [
    'invitation.revoke',
    async ({ owned, world, tenant, next }) => {
      const email = `revoked-${next()}@audited.test`;
      const invitation = await world.accounts.inviteMember(systemActor, tenant.organizationId, email);
      return owned.post('/client/settings/invitations/revoke', {
        organization: String(tenant.organizationId),
        invitation: String(invitation.id),
      });
    },
  ],
  'POST /client/settings/members/remove': [
    'organization.remove_member',
    async ({ owned, tenant, member }) =>
      owned.post('/client/settings/members/remove', {
        organization: String(tenant.organizationId),
        person: String((await member()).id),
      }),
  ],
  'POST /client/settings/profile': [
    ['tenant.set_billing_profile', 'tenant.rename'],
    ({ owned, tenant, next }) =>
      owned.post('/client/settings/profile', {
        tenant: String(tenant.id),
        tenant_name: `Workspace ${next()}`,
        legal_name: 'Audited Ltd',
        email: 'billing@audited.test',
        country: 'DE',
      }),
  ],
  'POST /client/account/password': [
    'person.change_password',
    ({ owned }) =>
      owned.post('/client/account/password', {
        current: 'a password for tests',
        next: 'a password for tests',
      }),
  ],
  'POST /client/account/sessions/end': [
    'session.end_one',
    async ({ owned, world, owner, email }) => {
      await world.signIn(email);
      const session = (await world.sessions.list(owner.id, undefined))[0]!.id;
      return owned.post('/client/account/sessions/end', { session });
    },
  ],
  'POST /client/account/sessions/end-others': [
    'session.end_others',
    ({ owned }) => owned.post('/client/account/sessions/end-others', {}),
  ],
  'POST /client/developer/': [
    'key.create',
    ({ owned, next }) => owned.post('/client/developer/', { name: `key ${next()}`, scope: 'read' }),
  ],
  'POST /client/developer/rotate': [
    'key.rotate',
    async ({ owned, keyId }) => owned.post('/client/developer/rotate', { key_id: await keyId() }),
  ],
  'POST /client/developer/narrow': [
    'key.narrow',
    async ({ owned, keyId, tenant }) =>
      owned.post('/client/developer/narrow', { key_id: await keyId(), tenants: String(tenant.id) }),
  ],
  'POST /client/developer/revoke': [
    'key.revoke',
    async ({ owned, keyId }) => owned.post('/client/developer/revoke', { key_id: await keyId() }),
  ],
  'POST /client/networks/': [
    'network.create',
    ({ owned, tenant, next }) =>
      owned.post('/client/networks/', { tenant: String(tenant.id), name: `net-${next()}`, location: 'fra' }),
  ],
  'POST /client/networks/:id': [
    'network.update',
    async ({ owned, network }) =>
      owned.post(`/client/networks/${(await network()).id}`, { name: 'renamed', description: 'x' }),
  ],
  'POST /client/networks/:id/sync': [
    'network.sync',
    async ({ owned, network }) => owned.post(`/client/networks/${(await network()).id}/sync`, {}),
  ],
  'POST /client/networks/:id/attach': [
    'network.attach_server',
    async ({ owned, network, server }) =>
      owned.post(`/client/networks/${(await network()).id}/attach`, { server: String(await server()) }),
  ],
  'POST /client/networks/:id/detach': [
    'network.detach_server',
    async ({ owned, attached }) => {
      const { serverId, networkId } = await attached();
      return owned.post(`/client/networks/${networkId}/detach`, { server: String(serverId) });
    },
  ],
  'POST /client/networks/:id/delete': [
    'network.delete',
    async ({ owned, network }) => {
      const { id, name } = await network();
      return owned.post(`/client/networks/${id}/delete`, { confirm_name: name });
    },
  ],
  'POST /client/servers/:id/firewall/switch': [
    'firewall.switch',
    async ({ owned, filtered }) => {
      const { serverId, version } = await filtered();
      return owned.post(`/client/servers/${serverId}/firewall/switch`, { version, enabled: 'yes' });
    },
  ],
  'POST /client/servers/:id/firewall/policies': [
    'firewall.policies',
    async ({ owned, filtered }) => {
      const { serverId, version } = await filtered();
      const form = { version, inbound: 'drop', outbound: 'accept' };
      return owned.post(`/client/servers/${serverId}/firewall/policies`, form);
    },
  ],
  'POST /client/servers/:id/firewall/remove': [
    'firewall.remove',
    async ({ owned, filtered }) => {
      const { serverId, version, rule } = await filtered();
      return owned.post(`/client/servers/${serverId}/firewall/remove`, { version, rule });
    },
  ],
  'POST /client/servers/:id/firewall/move': [
    'firewall.move',
    async ({ owned, filtered }) => {
      const { serverId, version, rule } = await filtered();
      return owned.post(`/client/servers/${serverId}/firewall/move`, { version, rule, by: '1' });
    },
  ],
  'POST /client/servers/:id/firewall/edit': [
    'firewall.edit',
    async ({ owned, filtered, setUp }) => {
      const { serverId, version, rule } = await filtered();
      const path = `/client/servers/${serverId}/firewall`;
      const page = await setUp.owned.page(`${path}?edit=${rule}`);
      const seen = /name="seen" value="([^"]+)"/.exec(page)![1]!;
      const form = {
        version,
        rule,
        seen,
        direction: 'inbound',
        action: 'drop',
        protocol: 'tcp',
        ports: '23',
      };
      return owned.post(`${path}/edit`, form);
    },
  ],
  'POST /client/servers/:id/firewall/add': [
    'firewall.add',
    async ({ owned, filtered }) => {
      const { serverId, version } = await filtered();
      const form = { version, direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' };
      return owned.post(`/client/servers/${serverId}/firewall/add`, form);
    },
  ],
  'POST /client/developer/webhooks/': [
    'webhook.create',
    ({ owned, tenant }) =>
      owned.post('/client/developer/webhooks/', {
        scope: `organization:${tenant.organizationId}`,
        url: 'http://127.0.0.1:9/new',
        events: 'key.created',
      }),
  ],
  'POST /client/developer/webhooks/:id': [
    'webhook.update',
    async ({ owned, endpoint }) =>
      owned.post(`/client/developer/webhooks/${await endpoint()}`, {
        url: 'http://127.0.0.1:9/changed',
        events: 'key.revoked',
      }),
  ],
  'POST /client/developer/webhooks/:id/rotate': [
    'webhook.rotate_secret',
    async ({ owned, endpoint }) => owned.post(`/client/developer/webhooks/${await endpoint()}/rotate`, {}),
  ],
  'POST /client/developer/webhooks/:id/delete': [
    'webhook.delete',
    async ({ owned, endpoint }) =>
      owned.post(`/client/developer/webhooks/${await endpoint()}/delete`, { confirm_name: '127.0.0.1:9' }),
  ],
  'POST /client/developer/webhooks/:id/enable': [
    'webhook.enable',
    async ({ owned, endpoint }) => owned.post(`/client/developer/webhooks/${await endpoint()}/enable`, {}),
  ],
  'POST /client/developer/webhooks/:id/disable': [
    'webhook.disable',
    async ({ owned, endpoint }) => owned.post(`/client/developer/webhooks/${await endpoint()}/disable`, {}),
  ],
  'POST /client/developer/webhooks/:id/test': [
    'webhook.test',
    async ({ owned, endpoint }) => owned.post(`/client/developer/webhooks/${await endpoint()}/test`, {}),
  ],
  'POST /client/developer/webhooks/:id/replay': [
    'webhook.replay',
    async ({ owned, endpoint, world, actor }) => {
      const id = await endpoint();
      const delivery = await world.webhooks.sendTest(await actor(), id);
      await world.database.pool.query(
        "update webhook_deliveries set status = 'failed', finished_at = svc_now() where id = $1",
        [delivery],
      );
      return owned.post(`/client/developer/webhooks/${id}/replay`, { delivery: String(delivery) });
    },
  ],
};

/** The page of a finding. */
function pathOf({ serverId, finding }: Awaited<ReturnType<Stage['found']>>) {
  const { address, transport, port, cve_id, fingerprint } = finding;
  const path = `/client/servers/${serverId}/protect/findings/${address}/${transport}-${port}/${cve_id}`;
  return { path, fingerprint };
}
