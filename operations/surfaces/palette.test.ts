/** What the command palettes of the portal and of the console find, and for whom. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { explainStatements, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
});
after(() => world[Symbol.asyncDispose]());

interface Hit {
  kind: string;
  text: string;
  detail: string;
  href: string;
}

const asked = async (visitor: Awaited<ReturnType<typeof visit>>, path: string) =>
  (await (await visitor.get(path)).json()) as Hit[];

test('a customer finds their own servers by words, id and address, and nothing of another customer', async () => {
  const [mine, other] = [await world.createCustomer('Mine'), await world.createCustomer('Other')];
  const own = await world.deploy(mine.tenant, 'prod-db-3');
  const foreign = await world.deploy(other.tenant, 'prod-db-4');
  const [[ownAddress], [foreignAddress]] = [
    await world.addresses.listAllocationsOfServers([own.serverId]),
    await world.addresses.listAllocationsOfServers([foreign.serverId]),
  ];
  const visitor = await visit(world, mine.email, '/client/');
  const find = (q: string) => asked(visitor, `/client/palette?q=${encodeURIComponent(q)}`);
  const href = `/client/servers/${own.serverId}`;
  for (const q of ['db', 'PROD 3', 'prod-db', String(own.serverId)]) {
    const hits = await find(q);
    assert.deepEqual(
      hits.filter(({ kind }) => kind === 'Servers').map((hit) => hit.href),
      [href],
      q,
    );
  }
  const [hit] = await find(ownAddress!.address);
  assert.deepEqual(hit, { kind: 'Addresses', text: ownAddress!.address, detail: 'prod-db-3', href });
  const beginning = ownAddress!.address.split('.').slice(0, 3).join('.');
  const inBlock = await find(`${beginning}.`);
  assert.deepEqual(
    inBlock.map(({ text }) => text),
    [ownAddress!.address],
  );
  for (const q of [foreignAddress!.address, String(foreign.serverId), '4', 'other']) {
    const hits = await find(q);
    assert.ok(!JSON.stringify(hits).includes(`/servers/${foreign.serverId}"`), q);
  }
});

test('a customer finds the keys that they may rotate, by what they do and by name', async () => {
  const [mine, other] = [await world.createCustomer('Rotates'), await world.createCustomer('Rotates too')];
  const key = await world.createKey(mine, 'full');
  await world.createKey(other, 'full');
  const keyId = key.split('_')[1]!;
  const visitor = await visit(world, mine.email, '/client/');
  const hit = {
    kind: 'API keys',
    text: 'Rotate full key',
    detail: `svc_${keyId}_…`,
    href: `/client/developer/#rotate-${keyId}`,
  };
  for (const q of ['rot', 'Rotate key', 'full', keyId.slice(0, 6)])
    assert.deepEqual(await asked(visitor, `/client/palette?q=${encodeURIComponent(q)}`), [hit], q);
  assert.match(await (await visitor.get('/client/developer/')).text(), new RegExp(`id="rotate-${keyId}"`));
  await visitor.post('/client/developer/rotate', { key_id: keyId });
  const left = await asked(visitor, '/client/palette?q=rotate');
  assert.ok(left.length === 1 && left[0]!.href !== hit.href, 'the one that replaces it');
});

test('strange texts find nothing and break nothing', async () => {
  const { email } = await world.createCustomer('Strange');
  const visitor = await visit(world, email, '/client/');
  for (const q of ['', '  ', "'", "':* | 'a", '%', '\\', '::', '\u0000a', '9'.repeat(40), 'x'.repeat(100)])
    assert.deepEqual(await asked(visitor, `/client/palette?q=${encodeURIComponent(q)}`), [], q);
  assert.equal((await visitor.get(`/client/palette?q=${'x'.repeat(101)}`)).status, 422);
});

test('staff find customers, servers of all and addresses; a stranger is asked to sign in', async () => {
  const { tenant } = await world.createCustomer('Findable');
  const { serverId } = await world.deploy(tenant, 'findable-server');
  const visitor = await visit(world, 'support@staff.test', '/console/');
  const hits = await asked(visitor, '/console/palette?q=findab');
  assert.ok(hits.some((hit) => hit.kind === 'Customers' && hit.href === `/console/customers/${tenant.id}`));
  assert.ok(hits.some((hit) => hit.kind === 'Servers' && hit.href === `/console/servers/${serverId}`));
  const strange = await fetch(`${world.url}/console/palette?q=a`, { redirect: 'manual' });
  assert.equal(strange.status, 303);
  const renewing = await fetch(`${world.url}/client/`, { headers: { 'x-refresh': '1' }, redirect: 'manual' });
  assert.equal(renewing.status, 401);
});

test('a search is read by its indexes, beside 20,000 servers of others', async () => {
  const { tenant, owner } = await world.createCustomer('Planned');
  const { serverId } = await world.deploy(tenant, 'needle-1');
  const hay = await world.createCustomer('Hay');
  await world.database.pool.query(
    `with orders as (
       insert into server_orders (tenant_id, plan_id, state, billing_cycle, due_quanta, root_password)
       select $2, plan_id, 'paid', 'hourly', 0, '' from servers, generate_series(1, 20000) where id = $1 returning id)
     insert into servers (tenant_id, order_id, plan_id, image_id, cluster_id, name, hostname, hourly_quanta, monthly_cap_quanta)
       select $2, o.id, s.plan_id, s.image_id, s.cluster_id, 'hay-' || o.id, 'hay-' || o.id, 1, 1
       from servers s, orders o where s.id = $1`,
    [serverId, hay.tenant.id],
  );
  await world.database.pool.query('analyze');
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const staff = { kind: 'staff', personId: 1, role: 'support' } as const;
  for (const as of [actor, staff]) {
    const nodes = await explainStatements(world.database, async () => {
      const found = await world.servers.search(as, 'needle', 6);
      assert.deepEqual(
        found.servers.map((hit) => hit.serverId),
        [serverId],
      );
      await world.servers.search(as, '192.0.2.', 6);
    });
    const wide = nodes.filter((node) => rowsReadBy(node) > 1000);
    assert.deepEqual(wide, [], as.kind);
  }
});
