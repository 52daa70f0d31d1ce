import { randomUUID } from 'node:crypto';
import { systemActor } from '#operations/accounts/index.ts';
import { password } from '#operations/testing/create-world.ts';
import type { Cases } from './case.ts';
import type { Stage } from './stage.ts';

const offers = {
  locations: (slug: string) => ({ slug, name: 'Somewhere', country: 'DE' }),
  plans: (slug: string) => ({
    slug,
    name: 'Plan',
    vcpus: '1',
    memory_gib: '1',
    disk_gb: '10',
    hourly: '0.0100',
    monthly: '6.00',
    offered: 'on',
  }),
  images: (slug: string) => ({ slug, name: 'Image', family: 'debian', offered: 'on' }),
};

const colleague = ({ world, next }: Stage) =>
  world.accounts.createPerson(systemActor, {
    email: `colleague-${next()}@staff.test`,
    name: 'Colleague',
    password,
    staffRole: 'support',
  });

/** The routes of the operators' console, each with a request that changes something. */
export const consoleCases: Cases = {
  'POST /console/customers/': [
    'organization.create',
    ({ operated, next }) =>
      operated.post('/console/customers/', {
        organization: `New ${next()}`,
        email: `new-${next()}@customer.test`,
        name: 'New Owner',
      }),
  ],
  'POST /console/customers/:id/credit': [
    'credit.deposit',
    ({ operated, tenant, next }) =>
      operated.post(`/console/customers/${tenant.id}/credit`, {
        amount: '999999.00',
        reference: `wire-${next()}`,
      }),
  ],
  'POST /console/customers/:id/adjust': [
    'credit.adjust',
    ({ operated, tenant }) =>
      operated.post(`/console/customers/${tenant.id}/adjust`, {
        amount: '-1.00',
        reason: 'a mistake',
        form_id: randomUUID(),
      }),
  ],
  'POST /console/customers/:id/status': [
    'tenant.set_status',
    async ({ operated, otherCustomer }) => {
      const { tenant } = await otherCustomer();
      return operated.post(`/console/customers/${tenant.id}/status`, { status: 'SUSPENDED' });
    },
  ],
  'POST /console/customers/:id/close': [
    'tenant.set_status',
    async ({ operated, otherCustomer }) => {
      const { tenant } = await otherCustomer();
      return operated.post(`/console/customers/${tenant.id}/close`, { confirm_name: tenant.name });
    },
  ],
  'POST /console/customers/:id/members/active': [
    'person.deactivate',
    async ({ operated, tenant, member }) =>
      operated.post(`/console/customers/${tenant.id}/members/active`, {
        person: String((await member()).id),
        active: 'no',
      }),
  ],
  'POST /console/customers/:id/members/link': [
    'person.send_password_link',
    async ({ operated, tenant, member }) =>
      operated.post(`/console/customers/${tenant.id}/members/link`, { person: String((await member()).id) }),
  ],
  'POST /console/reconciliation/retry': [
    'charge.retry_reconciliation',
    async ({ operated, world, otherCustomer, formId }) => {
      const { tenant } = await otherCustomer();
      await world.saveCard(tenant, '4000000000000259');
      await world.payments.addCredit(systemActor, tenant.id, { amountQuanta: 100_000, formId: formId() });
      const [charge] = await world.payments.listCharges(systemActor, tenant.id, 1);
      return operated.post('/console/reconciliation/retry', { charge: String(charge!.id) });
    },
  ],
  'POST /console/staff/': [
    'person.create',
    ({ operated, next }) =>
      operated.post('/console/staff/', {
        email: `hired-${next()}@staff.test`,
        name: 'Hired',
        role: 'operator',
      }),
  ],
  'POST /console/staff/active': [
    'person.deactivate',
    async (stage) =>
      stage.operated.post('/console/staff/active', {
        person: String((await colleague(stage)).id),
        active: 'no',
      }),
  ],
  'POST /console/staff/factors': [
    'person.remove_second_factors',
    async (stage) =>
      stage.operated.post('/console/staff/factors', { person: String((await colleague(stage)).id) }),
  ],
  'POST /console/customers/:id/members/factors': [
    'person.remove_second_factors',
    async ({ operated, tenant, member }) =>
      operated.post(`/console/customers/${tenant.id}/members/factors`, {
        person: String((await member()).id),
      }),
  ],
  'POST /console/staff/link': [
    'person.send_password_link',
    async (stage) =>
      stage.operated.post('/console/staff/link', { person: String((await colleague(stage)).id) }),
  ],
  'POST /console/account/password': [
    'person.change_password',
    ({ operated }) => operated.post('/console/account/password', { current: password, next: password }),
  ],
  'POST /console/account/sessions/end': [
    'session.end_one',
    async ({ operated, world, staff }) => {
      await world.signIn(staff.email);
      const session = (await world.sessions.list(staff.id, undefined))[0]!.id;
      return operated.post('/console/account/sessions/end', { session });
    },
  ],
  'POST /console/account/sessions/end-others': [
    'session.end_others',
    ({ operated }) => operated.post('/console/account/sessions/end-others', {}),
  ],
  'POST /console/servers/:id/retry': [
    'server.retry',
    async ({ operated, failedServer }) => operated.post(`/console/servers/${await failedServer()}/retry`, {}),
  ],
  'POST /console/servers/:id/resolve': [
    'server.resolve_remove',
    async ({ operated, failedServer, next }) => {
      const name = `broken-${next()}`;
      const form = { resolution: 'remove', confirm_name: name };
      return operated.post(`/console/servers/${await failedServer(name)}/resolve`, form);
    },
  ],
  'POST /console/servers/:id/actions': [
    'server.stop',
    async ({ operated, server }) =>
      operated.post(`/console/servers/${await server()}/actions`, { action: 'stop' }),
  ],
  'POST /console/clusters/': [
    'cluster.create',
    async ({ operated, location, next }) =>
      operated.post('/console/clusters/', {
        name: `cluster-${next()}`,
        location: String(await location()),
        driver: 'simulated',
      }),
  ],
  'POST /console/clusters/:id/nodes': [
    'node.create',
    ({ operated, world, next }) =>
      operated.post(`/console/clusters/${world.clusterId}/nodes`, {
        name: `added-${next()}`,
        vcpus: '4',
        memory_gib: '8',
        disk_gb: '100',
      }),
  ],
  'POST /console/clusters/nodes/:id': [
    'node.update',
    async ({ operated, node }) =>
      operated.post(`/console/clusters/nodes/${await node()}`, {
        vcpus: '8',
        memory_gib: '16',
        disk_gb: '200',
      }),
  ],
  'POST /console/clusters/nodes/:id/open': [
    'node.update',
    async ({ operated, node }) => operated.post(`/console/clusters/nodes/${await node()}/open`, {}),
  ],
  'POST /console/clusters/nodes/:id/close': [
    'node.update',
    async ({ operated, node }) => operated.post(`/console/clusters/nodes/${await node()}/close`, {}),
  ],
  'POST /console/clusters/nodes/:id/remove': [
    'node.remove',
    async ({ operated, node }) => operated.post(`/console/clusters/nodes/${await node()}/remove`, {}),
  ],
  'POST /console/clusters/:id/pools': [
    'pool.create',
    ({ operated, world, next }) => {
      const net = `10.77.${next() % 250}`;
      return operated.post(`/console/clusters/${world.clusterId}/pools`, {
        prefix: `${net}.0/24`,
        gateway: `${net}.1`,
        first: `${net}.10`,
        last: `${net}.20`,
      });
    },
  ],
  'POST /console/clusters/pools/:id/remove': [
    'pool.remove',
    async ({ operated, world, next }) => {
      const net = `10.78.${next() % 250}`;
      const id = await world.addresses.addPool(systemActor, {
        clusterId: world.clusterId,
        prefix: `${net}.0/24`,
        gateway: `${net}.1`,
        firstAddress: `${net}.10`,
        lastAddress: `${net}.20`,
      });
      return operated.post(`/console/clusters/pools/${id}/remove`, {});
    },
  ],
  ...Object.fromEntries(
    (['locations', 'plans', 'images'] as const).flatMap((kind): [string, Cases[string]][] => {
      const one = kind.slice(0, -1);
      return [
        [
          `POST /console/catalog/${kind}`,
          [
            `${one}.create`,
            ({ operated, next }) => operated.post(`/console/catalog/${kind}`, offers[kind](`made-${next()}`)),
          ],
        ],
        [
          `POST /console/catalog/${kind}/:id`,
          [
            `${one}.update`,
            async ({ operated, world, next, setUp }) => {
              const slug = `changed-${next()}`;
              await setUp.operated.post(`/console/catalog/${kind}`, offers[kind](slug));
              const { rows } = await world.database.pool.query(`select id from ${kind} where slug = $1`, [
                slug,
              ]);
              return operated.post(`/console/catalog/${kind}/${rows[0].id}`, {
                ...offers[kind](slug),
                name: 'Changed',
              });
            },
          ],
        ],
      ];
    }),
  ),
  'POST /console/projects/': [
    'project.create',
    ({ operated, next }) =>
      operated.post('/console/projects/', { name: `made ${next()}`, permissions: 'vm_inventory_read' }),
  ],
  'POST /console/projects/:id': [
    'project.update',
    async ({ operated, project }) => {
      const { id, name } = await project();
      return operated.post(`/console/projects/${id}`, { name, permissions: 'vm_inventory_read' });
    },
  ],
  'POST /console/projects/:id/tokens': [
    'project.issue_token',
    async ({ operated, project }) => operated.post(`/console/projects/${(await project()).id}/tokens`, {}),
  ],
  'POST /console/projects/:id/sources': [
    'project.hand_over_source',
    async ({ operated, project, world, server, tenant }) => {
      const [from, to] = [await project(), await project()];
      const serverId = await server();
      const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
      await world.database.pool.query(
        `insert into protect_series (allocation_id, tenant_id, server_id, address, source_project_id, source_site_id,
           source_seen_at, waiting_project_id, waiting_site_id, waiting_at)
         values ($1, $2, $3, $4, $5, 3, svc_now(), $6, 4, svc_now())`,
        [allocation!.id, tenant.id, serverId, allocation!.address, from.id, to.id],
      );
      const fields = { site_id: '4', owner_project_id: String(from.id), owner_site_id: '3' };
      return operated.post(`/console/projects/${to.id}/sources`, fields);
    },
  ],
  'POST /console/projects/:id/revoke': [
    'project.revoke_token',
    async ({ operated, project, world }) => {
      const { id } = await project();
      const { id: tokenId } = await world.adminProjects.issueToken(systemActor, id, null);
      return operated.post(`/console/projects/${id}/revoke`, { token_id: tokenId });
    },
  ],
};
