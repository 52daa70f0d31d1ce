import { randomUUID } from 'node:crypto';
import { systemActor } from '#operations/accounts/index.ts';
import { password } from '#operations/testing/create-world.ts';
import { peerFields, plantPeer } from '#service-kit/sign-on/testing/plant-sign-on.ts';
import { form, type Stage } from './audit-stage.ts';

const offers = {
  locations: { name: 'Somewhere', country: 'DE' },
  plans: {
    ...{ name: 'Plan', vcpus: '1', memory_gib: '1', disk_gb: '10' },
    ...{ hourly: '0.0100', monthly: '6.00', offered: 'on' },
  },
  images: { name: 'Image', family: 'debian', offered: 'on' },
};

const colleague = async ({ world, next }: Stage) => {
  const email = `colleague-${next()}@staff.test`;
  const { id } = await world.accounts.createPerson(systemActor, {
    ...{ email, name: 'Colleague', password, staffRole: 'support' },
  });
  return { person: id };
};
const memberOf = async ({ tenant, member }: Stage) => ({ ':id': tenant.id, person: (await member()).id });
const rangeOf = (net: string) => ({ prefix: `${net}.0/24`, gateway: `${net}.1` });

/** The routes of the operators' console, each with a request that changes something. */
export const consoleCases = Object.fromEntries([
  form('POST /console/customers/', 'organization.create', ({ next }) => ({
    ...{ organization: `New ${next()}`, email: `new-${next()}@customer.test`, name: 'New Owner' },
  })),
  form('POST /console/customers/:id/credit', 'credit.deposit', ({ tenant, next }) => ({
    ...{ ':id': tenant.id, amount: '999999.00', reference: `wire-${next()}` },
  })),
  form('POST /console/customers/:id/adjust', 'credit.adjust', ({ tenant }) => ({
    ...{ ':id': tenant.id, amount: '-1.00', reason: 'a mistake', form_id: randomUUID() },
  })),
  form('POST /console/customers/:id/status', 'tenant.set_status', async ({ otherCustomer }) => ({
    ':id': (await otherCustomer()).tenant.id,
    status: 'SUSPENDED',
  })),
  form('POST /console/customers/:id/close', 'tenant.set_status', async ({ otherCustomer }) => {
    const { tenant } = await otherCustomer();
    return { ':id': tenant.id, confirm_name: tenant.name };
  }),
  form('POST /console/customers/:id/members/active', 'person.deactivate', async (stage) => ({
    ...(await memberOf(stage)),
    active: 'no',
  })),
  form('POST /console/customers/:id/members/link', 'person.send_password_link', memberOf),
  form('POST /console/customers/:id/members/factors', 'person.remove_second_factors', memberOf),
  form(
    'POST /console/reconciliation/retry',
    'charge.retry_reconciliation',
    async ({ world, otherCustomer }) => {
      const { tenant } = await otherCustomer();
      await world.saveCard(tenant, '4000000000000259');
      const credit = { amountQuanta: 100_000, formId: randomUUID() };
      await world.payments.addCredit(systemActor, tenant.id, credit);
      return { charge: (await world.payments.listCharges(systemActor, tenant.id, 1))[0]!.id };
    },
  ),
  form('POST /console/staff/', 'person.create', ({ next }) => ({
    ...{ email: `hired-${next()}@staff.test`, name: 'Hired', role: 'operator' },
  })),
  form('POST /console/staff/active', 'person.deactivate', async (stage) => ({
    ...(await colleague(stage)),
    active: 'no',
  })),
  form('POST /console/staff/factors', 'person.remove_second_factors', colleague),
  form('POST /console/staff/link', 'person.send_password_link', colleague),
  form('POST /console/account/password', 'person.change_password', { current: password, next: password }),
  form('POST /console/account/sessions/end', 'session.end_one', async ({ world, staff }) => {
    await world.signIn(staff.email);
    return { session: (await world.sessions.list(staff.id, undefined))[0]!.id };
  }),
  form('POST /console/account/sessions/end-others', 'session.end_others'),
  form('POST /console/servers/:id/retry', 'server.retry', async ({ failedServer }) => ({
    ':id': await failedServer(),
  })),
  form('POST /console/servers/:id/resolve', 'server.resolve_remove', async ({ failedServer, next }) => {
    const name = `broken-${next()}`;
    return { ':id': await failedServer(name), resolution: 'remove', confirm_name: name };
  }),
  form('POST /console/servers/:id/guard', 'guard.switch', async ({ server }) => ({
    ':id': await server(),
    state: 'off',
  })),
  form('POST /console/servers/:id/actions', 'server.stop', async ({ server }) => ({
    ':id': await server(),
    action: 'stop',
  })),
  form('POST /console/clusters/nodes/:id/mend', 'server.resize', async ({ server, node, world }) => {
    const [nodeId, guest] = [await node(), `vm-${await server()}`];
    const text = "insert into guest_drifts (node_id, guest, kind, detail) values ($1, $2, 'size', '')";
    await world.database.pool.query(text, [nodeId, guest]);
    return { ':id': nodeId, guest, kind: 'size' };
  }),
  form('POST /console/clusters/nodes/:id/check', 'node.check', async ({ node }) => ({
    ':id': await node(),
  })),
  form('POST /console/clusters/', 'cluster.create', async ({ location, next }) => ({
    ...{ name: `cluster-${next()}`, location: await location(), driver: 'simulated' },
  })),
  form('POST /console/clusters/:id/nodes', 'node.create', ({ world, next }) => ({
    ...{ ':id': world.clusterId, name: `added-${next()}`, vcpus: 4, memory_gib: 8, disk_gb: 100 },
  })),
  form('POST /console/clusters/nodes/:id', 'node.update', async ({ node }) => ({
    ...{ ':id': await node(), vcpus: 8, memory_gib: 16, disk_gb: 200 },
  })),
  ...(['open', 'close', 'remove'] as const).map((verb) =>
    form(
      `POST /console/clusters/nodes/:id/${verb}`,
      verb === 'remove' ? 'node.remove' : 'node.update',
      async ({ node }) => ({ ':id': await node() }),
    ),
  ),
  form('POST /console/clusters/:id/pools', 'pool.create', ({ world, next }) => {
    const net = `10.77.${next() % 250}`;
    return { ':id': world.clusterId, ...rangeOf(net), first: `${net}.10`, last: `${net}.20` };
  }),
  form('POST /console/clusters/pools/:id/remove', 'pool.remove', async ({ world, next }) => {
    const net = `10.78.${next() % 250}`;
    const range = { firstAddress: `${net}.10`, lastAddress: `${net}.20` };
    const pool = { clusterId: world.clusterId, ...rangeOf(net), ...range };
    return { ':id': await world.addresses.addPool(systemActor, pool) };
  }),
  ...(['locations', 'plans', 'images'] as const).flatMap((kind) => {
    const one = kind.slice(0, -1);
    return [
      form(`POST /console/catalog/${kind}`, `${one}.create`, ({ next }) => ({
        slug: `made-${next()}`,
        ...offers[kind],
      })),
      form(`POST /console/catalog/${kind}/:id`, `${one}.update`, async ({ world, next, setUp }) => {
        const offer = { slug: `changed-${next()}`, ...offers[kind] };
        await setUp.operated.post(`/console/catalog/${kind}`, offer);
        const { rows } = await world.database.pool.query(`select id from ${kind} where slug = $1`, [
          offer.slug,
        ]);
        return { ...offer, ':id': rows[0].id, name: 'Changed' };
      }),
    ];
  }),
  form('POST /console/projects/', 'project.create', ({ next }) => ({
    name: `made ${next()}`,
    permissions: 'vm_inventory_read',
  })),
  form('POST /console/projects/:id', 'project.update', async ({ project }) => {
    const { id, name } = await project();
    return { ':id': id, name, permissions: 'vm_inventory_read' };
  }),
  form('POST /console/projects/:id/tokens', 'project.issue_token', async ({ project }) => ({
    ':id': (await project()).id,
  })),
  form('POST /console/projects/:id/sources', 'project.hand_over_source', async (stage) => {
    const { project, world, server, tenant } = stage;
    const [from, to] = [await project(), await project()];
    const serverId = await server();
    const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
    await world.database.pool.query(
      `insert into protect_series (allocation_id, tenant_id, server_id, address, source_project_id, source_site_id,
         source_seen_at, waiting_project_id, waiting_site_id, waiting_at)
       values ($1, $2, $3, $4, $5, 3, svc_now(), $6, 4, svc_now())`,
      [allocation!.id, tenant.id, serverId, allocation!.address, from.id, to.id],
    );
    return { ':id': to.id, site_id: 4, owner_project_id: from.id, owner_site_id: 3 };
  }),
  form('POST /console/projects/:id/revoke', 'project.revoke_token', async ({ project, world }) => {
    const { id } = await project();
    return { ':id': id, token_id: (await world.adminProjects.issueToken(systemActor, id, null)).id };
  }),
  form('POST /console/sign-on/key', 'sign_on.create_key'),
  form('POST /console/sign-on/peer', 'sign_on.save_peer', async ({ world }) => {
    await world.signOn.createKey(systemActor);
    return peerFields();
  }),
  form('POST /console/sign-on/link', 'sign_on.link_account', async ({ world, staff }) => {
    await plantPeer(world.signOn, systemActor);
    return { subject: 900, person: staff.id };
  }),
  form('POST /console/sign-on/unlink', 'sign_on.unlink_account', async ({ world, staff }) => {
    await plantPeer(world.signOn, systemActor);
    await world.signOn.linkAccount(systemActor, { subjectId: 900, personId: staff.id });
    return { subject: 900 };
  }),
]);
