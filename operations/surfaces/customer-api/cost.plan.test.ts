import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { explainStatements, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';

const customers = 3_000;

test('metered reads of a server and of a list read the rows of their customer by keys, among thousands of others', async () => {
  await using world = await createWorld();
  const customer = await world.createCustomer('Cost');
  const headers = { authorization: `Bearer ${await world.createKey(customer)}` };
  const { serverId } = await world.deploy(customer.tenant, 'costly');
  await crowd(world);
  const call = async () => {
    for (const path of [`/servers/${serverId}`, '/servers?limit=200']) {
      const answer = await fetch(`${world.url}/api/v2${path}`, { headers });
      assert.equal(answer.status, 200, await answer.text());
    }
  };
  await call();
  const nodes = await explainStatements(world.database, call);
  assert.ok(nodes.length >= 4, `${nodes.length} nodes`);
  for (const node of nodes) assert.ok(rowsReadBy(node) < 100, JSON.stringify(node));
});

test('servers that are asked for at once are one statement, in which each workspace finds its own', async () => {
  await using world = await createWorld();
  const tenants = [(await world.createCustomer('One')).tenant, (await world.createCustomer('Two')).tenant];
  const ids: number[] = [];
  for (const tenant of tenants) ids.push((await world.deploy(tenant, 'shared')).serverId);
  let statements = 0;
  using _ = plantSql((text) => {
    statements += Number(text.includes('join servers s'));
    return text;
  });
  const pairs = tenants.flatMap((tenant) => [...ids, 424_242].map((id) => ({ tenant, id })));
  const found = await Promise.all(
    pairs.map(({ tenant, id }) => world.servers.findServer(systemActor, tenant.id, id)),
  );
  assert.deepEqual(
    found.map((server) => server && [server.id, server.tenantId]),
    [[ids[0], tenants[0]!.id], null, null, null, [ids[1], tenants[1]!.id], null],
  );
  assert.equal(statements, 1);
});

/** Other customers, each with a person, a key, a server and a month of use. */
async function crowd(world: World): Promise<void> {
  const run = (text: string) => world.database.pool.query(text, [customers]);
  await run(`insert into people (email, name, password_hash) select 'p' || i || '@crowd.test', 'P', 'x'
    from generate_series(1, $1::int) i`);
  await run(`insert into organizations (name) select 'Crowd ' || i from generate_series(1, $1::int) i`);
  await run(`insert into memberships (organization_id, person_id, role)
    select o.id, p.id, 'owner' from (select id, name from organizations where name like 'Crowd %' limit $1) o
    join people p on p.email = 'p' || substr(o.name, 7) || '@crowd.test'`);
  await run(`insert into tenants (organization_id, name, slug, is_payer)
    select id, name, 'crowd-' || substr(name, 7), true from organizations where name like 'Crowd %' limit $1`);
  await run(`insert into api_keys (key_id, digest, name, scope, organization_id, person_id, tenant_access)
    select substr(md5(m.person_id::text), 1, 16), decode(md5(m.person_id::text) || md5(m.person_id::text), 'hex'),
      'key', 'full', m.organization_id, m.person_id, 'selected'
    from memberships m join organizations o on o.id = m.organization_id where o.name like 'Crowd %' limit $1`);
  await run(`insert into api_key_tenants (key_id, tenant_id) select k.key_id, t.id
    from api_keys k join tenants t on t.organization_id = k.organization_id where t.slug like 'crowd-%' limit $1`);
  await run(`insert into billing_profiles (tenant_id, legal_name, email, country)
    select id, name, slug || '@crowd.test', 'DE' from tenants where slug like 'crowd-%' limit $1`);
  await run(`insert into credit_balances (tenant_id, balance_quanta)
    select id, 7 from tenants where slug like 'crowd-%' limit $1`);
  await run(`insert into server_orders (tenant_id, plan_id, state, billing_cycle, due_quanta, root_password, paid_at)
    select t.id, o.plan_id, o.state, o.billing_cycle, 0, 'x', o.paid_at
    from tenants t, (select * from server_orders limit 1) o where t.slug like 'crowd-%' limit $1`);
  await run(`insert into servers (tenant_id, order_id, plan_id, image_id, cluster_id, name, hostname, labels, ssh_keys,
      hourly_quanta, monthly_cap_quanta, provisioning_state, power_state)
    select o.tenant_id, o.id, s.plan_id, s.image_id, s.cluster_id, 'crowd', 'crowd', '{}', '[]', 1, 1, 'ready', 'running'
    from server_orders o, (select * from servers limit 1) s where o.root_password = 'x' limit $1`);
  await run(`insert into usage_months (tenant_id, month, count)
    select id, date_trunc('month', svc_now())::date, 7 from tenants where slug like 'crowd-%' limit $1`);
  await run(`insert into usage_days (tenant_id, day, count)
    select id, svc_now()::date, 7 from tenants where slug like 'crowd-%' limit $1`);
  await run(`insert into usage_key_months (tenant_id, month, key_id, count)
    select t.id, date_trunc('month', svc_now())::date, k.key_id, 7
    from api_keys k join tenants t on t.organization_id = k.organization_id where t.slug like 'crowd-%' limit $1`);
  await world.database.pool.query('vacuum analyze');
}
