import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensurePool } from '#operations/addresses/index.ts';
import { ensureCluster } from '#operations/clusters/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { findFreeAddress } from './store.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

async function destroy(tenantId: number, serverId: number): Promise<void> {
  await world.servers.destroyServer(systemActor, tenantId, serverId);
  await world.jobs.drain();
}

test('NET-2.3: an address that changes hands gets a generation of its own, and the old one stays ended', async () => {
  const { tenant } = await world.createCustomer('First');
  const { tenant: other } = await world.createCustomer('Second');
  const { serverId, allocations } = await world.deploy(tenant, 'first');
  const [before] = allocations;
  await destroy(tenant.id, serverId);
  // Everything else of the pool is used up, so that the address comes back.
  await world.database.pool.query(
    'update address_pools set first_address = $1, last_address = $1 where family(prefix) = 4',
    [before!.address],
  );
  const next = await world.deploy(other, 'second');
  const now = next.allocations.find((allocation) => allocation.address === before!.address)!;
  assert.ok(now.id > before!.id);
  assert.equal(now.tenantId, other.id);
  const ended = await world.addresses.findAllocation(before!.id);
  assert.ok(ended?.releasedAt);
  assert.deepEqual([ended.tenantId, ended.assignedAt], [tenant.id, before!.assignedAt]);
  const active = await world.addresses.listActiveAllocations({ afterId: 0, limit: 1_000 });
  assert.ok(!active.allocations.some((allocation) => allocation.id === before!.id));
  await assert.rejects(
    world.ordering.createServer(systemActor, { tenantId: tenant.id, plan: 'small', image: 'debian-12' }),
    (error) => hasCode(error, 'servers.capacity'),
  );
  await world.database.pool.query(
    "update address_pools set first_address = '203.0.113.10', last_address = '203.0.113.250' where family(prefix) = 4",
  );
});

test('a released address rests while there are others that rested longer', async () => {
  const { tenant } = await world.createCustomer('Rest');
  const first = await world.deploy(tenant, 'rest-1');
  await destroy(tenant.id, first.serverId);
  const second = await world.deploy(tenant, 'rest-2');
  assert.notEqual(second.allocations[0]!.address, first.allocations[0]!.address);
});

test('servers ordered at the same moment never share an address', async () => {
  const { tenant } = await world.createCustomer('Crowd');
  const orders = Array.from({ length: 12 }, () =>
    world.ordering.createServer(systemActor, { tenantId: tenant.id, plan: 'small', image: 'debian-12' }),
  );
  const ids = (await Promise.all(orders)).map((order) => order.serverId);
  const held = await world.addresses.listAllocationsOfServers(ids);
  assert.equal(held.length, 24);
  assert.equal(new Set(held.map((allocation) => allocation.address)).size, 24);
  await world.jobs.drain();
});

test('pages of active allocations follow each other by id without gap or repetition', async () => {
  const whole = await world.addresses.listActiveAllocations({ afterId: 0, limit: 1_000 });
  const seen: number[] = [];
  for (let afterId: number | null = 0; afterId !== null; ) {
    const page = await world.addresses.listActiveAllocations({ afterId, limit: 5 });
    seen.push(...page.allocations.map((allocation) => allocation.id));
    afterId = page.nextAfterId;
  }
  assert.deepEqual(
    seen,
    whole.allocations.map((allocation) => allocation.id),
  );
  assert.match(whole.allocations[0]!.assignedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test('an IPv6 range gives out its addresses in order, however wide it is', async () => {
  const setRange = (first: string, last: string) =>
    world.database.pool.query(
      "update address_pools set prefix = '2001:db8::/32', first_address = $1, last_address = $2 where family(prefix) = 6",
      [first, last],
    );
  const { tenant } = await world.createCustomer('Wide');
  const draw = async () =>
    (await world.deploy(tenant, 'wide')).allocations.find(({ family }) => family === 6)!.address;
  await setRange('2001:db8:200::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff');
  assert.deepEqual([await draw(), await draw()], ['2001:db8:200::', '2001:db8:200::1']);
  await setRange('2001:db8:200::', '2001:db8:200::2');
  assert.equal(await draw(), '2001:db8:200::2');
  await assert.rejects(draw(), (error) => hasCode(error, 'servers.capacity'));
  await setRange('2001:db8:113::10', '2001:db8:113::ffff');
});

test('a pool of the same prefix is made once for each cluster', async () => {
  const { rows } = await world.database.pool.query('select location_id from clusters limit 1');
  const clusterId = await ensureCluster(world.database.db, {
    locationId: rows[0].location_id,
    name: 'second',
    driver: 'simulated',
  });
  const pool = {
    clusterId,
    prefix: '203.0.113.0/24',
    gateway: '203.0.113.1',
    firstAddress: '203.0.113.1',
    lastAddress: '203.0.113.11',
  };
  await ensurePool(world.database.db, pool);
  await ensurePool(world.database.db, pool);
  const held = await world.database.pool.query(
    'select count(*) as pools from address_pools where cluster_id = $1',
    [clusterId],
  );
  assert.equal(held.rows[0].pools, 1);
});

test('guests that stand already are handed out first, whole, with their MAC, and again after their server is gone', async () => {
  const guest = { name: 'a', mac: '52:54:00:5e:00:11', addresses: ['203.0.113.77', '2001:db8:113::77'] };
  await using replayed = await createWorld({
    hypervisor: (usual) => ({ ...usual, preparedGuests: [guest] }),
  });
  const { tenant } = await replayed.createCustomer('Replayed');
  const first = await replayed.deploy(tenant, 'first');
  const second = await replayed.deploy(tenant, 'second');
  const inventory = async () =>
    (await replayed.servers.listInventory({ afterId: 0, limit: 10 })).vms.map(({ id, interfaces }) => ({
      id,
      mac: interfaces[0]!.macAddress,
      addresses: interfaces[0]!.addresses,
    }));
  const [one, two] = await inventory();
  assert.deepEqual(one, { id: first.serverId, mac: guest.mac, addresses: guest.addresses });
  assert.deepEqual([two?.id, two?.addresses.includes('203.0.113.77')], [second.serverId, false]);
  await replayed.servers.destroyServer(systemActor, tenant.id, first.serverId);
  await replayed.jobs.drain();
  const third = await replayed.deploy(tenant, 'third');
  const again = (await inventory()).find((vm) => vm.id === third.serverId);
  assert.deepEqual([again?.mac, again?.addresses], [guest.mac, guest.addresses]);
});

test('the last free address of a large pool is found', async () => {
  const { tenant } = await world.createCustomer('Large pool');
  const { serverId } = await world.deploy(tenant, 'large');
  const { pool, db } = world.database;
  const { rows } = await pool.query(
    `insert into address_pools (cluster_id, prefix, gateway, first_address, last_address)
     values ($1, '10.64.0.0/17', '10.64.0.1', '10.64.0.2', '10.64.64.2') returning id`,
    [world.clusterId],
  );
  await pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select $1, $2, $3, $4, '10.64.0.2'::inet + n, 17, '10.64.0.1', false from generate_series(0, 16383) n`,
    [rows[0].id, world.clusterId, tenant.id, serverId],
  );
  assert.equal(await findFreeAddress(db, Number(rows[0].id), []), '10.64.64.2');
});
