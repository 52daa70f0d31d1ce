import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
let key: string;
before(async () => {
  world = await createWorld({ includedPerMonth: 5_000 });
  call = createApiClient(world.url);
  key = await world.createKey(await world.createCustomer('Catalogue'), 'read');
});
after(() => world[Symbol.asyncDispose]());

const get = (path: string, headers = {}) => call('GET', `/api/v2${path}`, { key, headers });
const order = async () => {
  const full = await world.createKey(await world.createCustomer('Orders'));
  const body = { plan: 'small', image: 'debian-12', location: 'fra' };
  return call('POST', '/api/v2/servers', { key: full, body });
};

test('a read key sees plans, images and locations, each by slug and by id, and all prices as decimal text', async () => {
  const { plans, pagination } = (await get('/plans')).body;
  assert.deepEqual(
    plans.map(({ id: _, ...plan }: { id: number }) => plan),
    [
      {
        slug: 'small',
        name: 'Small',
        vcpus: 1,
        memory_mb: 2048,
        disk_gb: 20,
        port_mbit: null,
        price_hourly: '0.006',
        price_monthly_cap: '4.00',
        currency: 'USD',
        offered: true,
        locations: [{ id: plans[0].locations[0].id, slug: 'fra', available: true }],
      },
    ],
  );
  assert.equal(pagination.total, 1);
  for (const [list, slug] of [
    ['plans', 'small'],
    ['images', 'debian-12'],
    ['locations', 'fra'],
  ] as const) {
    const [first] = (await get(`/${list}`)).body[list];
    for (const ref of [slug, first.id]) assert.deepEqual((await get(`/${list}/${ref}`)).body, first, list);
    for (const ref of ['none', '987654321', '0', '%00'])
      assert.equal((await get(`/${list}/${ref}`)).status, 404, `${list} ${ref}`);
  }
  const prices = (await get('/prices')).body;
  assert.deepEqual(prices.plans, [
    { id: plans[0].id, slug: 'small', price_hourly: '0.006', price_monthly_cap: '4.00' },
  ]);
  assert.deepEqual(prices.api_requests, { included_per_month: 5_000, per_requests: 100_000, amount: '1.00' });
});

test('the catalogue may be kept for minutes and is a 304 afterwards, until an entry changes', async () => {
  const [plan] = await world.catalog.listPlans();
  for (const path of ['/plans', '/plans/small', '/images', '/locations/fra', '/prices']) {
    const first = await get(path);
    assert.equal(first.headers.get('cache-control'), 'private, max-age=300', path);
    const again = await get(path, { 'if-none-match': first.headers.get('etag')! });
    assert.deepEqual([again.status, again.text], [304, ''], path);
  }
  const tag = (await get('/plans/small')).headers.get('etag')!;
  await world.catalog.changePlan(systemActor, plan!.id, { ...plan!, hourlyQuanta: 70, portMbit: 500 });
  const changed = await get('/plans/small', { 'if-none-match': tag });
  assert.deepEqual([changed.status, changed.body.price_hourly, changed.body.port_mbit], [200, '0.007', 500]);
  assert.equal((await get('/locations/none')).headers.get('cache-control'), 'no-store');
});

test('an unchanged catalogue costs the look-up of the key, which has its version, and the count', async () => {
  for (const path of ['/plans', '/locations', '/prices']) {
    const tag = (await get(path)).headers.get('etag')!;
    const seen: string[] = [];
    {
      using _ = plantSql((text) => {
        seen.push(/from api_keys k|usage_months as kept/.exec(text)?.[0] ?? text);
        return text;
      });
      assert.equal((await get(path, { 'if-none-match': tag })).status, 304, path);
    }
    assert.deepEqual(seen.toSorted(), ['from api_keys k', 'usage_months as kept'], path);
  }
});

test('a change is seen once it is committed, in any order of commits, and a change that is undone is none', async () => {
  const room = async () => (await get('/plans/small')).body.locations[0].available;
  const [early, late] = [await world.database.pool.connect(), await world.database.pool.connect()];
  const close = 'update nodes set is_open = false';
  try {
    await early.query('begin');
    await early.query("update images set name = 'Early' where slug = 'debian-12'");
    await late.query('begin');
    await late.query(close);
    assert.equal(await room(), true);
    await late.query('commit');
    assert.equal(await room(), false);
    await early.query('commit');
    assert.equal((await get('/images/debian-12')).body.name, 'Early');
    await late.query('update nodes set is_open = true');
    assert.equal(await room(), true);
    await late.query('begin');
    await late.query(close);
    await late.query('rollback');
    assert.equal(await room(), true);
    await Promise.all(
      Array.from({ length: 20 }, () => world.database.pool.query('update nodes set is_open = is_open')),
    );
    const { rows } = await world.database.pool.query('select count(*) as count from catalog_changes');
    assert.ok(rows[0].count <= 21, 'changes do not pile up');
  } finally {
    early.release();
    late.release();
  }
});

test('a plan that is withdrawn leaves the list and stays readable, for servers still have it', async () => {
  const entry = { name: 'Old', vcpus: 1, memoryMb: 1, diskGb: 1, hourlyQuanta: 1, monthlyCapQuanta: 1 };
  const id = await ensurePlan(world.db(), { slug: 'old', ...entry });
  await world.catalog.changePlan(systemActor, id, { ...entry, portMbit: null, isOffered: false });
  const { plans } = (await get('/plans')).body;
  assert.ok(plans.every(({ slug }: { slug: string }) => slug !== 'old'));
  const { offered, locations } = (await get('/plans/old')).body;
  assert.deepEqual([offered, locations], [false, []]);
});

test('a location says which plans an order would find room for', async () => {
  const available = async () => {
    const [plan, location] = [(await get('/plans/small')).body, (await get('/locations/fra')).body];
    assert.equal(plan.locations[0].available, location.plans[0].available);
    return plan.locations[0].available;
  };
  const run = (text: string) => world.database.pool.query(text);
  const cases = [
    ['a closed node', 'update nodes set is_open = false', 'update nodes set is_open = true'],
    [
      'too little memory',
      'update nodes set memory_mb = 2047 + (select coalesce(sum(memory_mb), 0) from node_reservations where released_at is null)',
      'update nodes set memory_mb = 8388608',
    ],
    [
      'no free IPv4 address',
      // As many addresses as are taken.
      `update address_pools set last_address = first_address - 1
         + (select count(*) from allocations a where a.pool_id = address_pools.id and released_at is null)
       where family(prefix) = 4`,
      `update address_pools set last_address = '203.0.113.250' where family(prefix) = 4`,
    ],
  ] as const;
  assert.equal((await order()).status, 201);
  for (const [name, take, giveBack] of cases) {
    assert.equal(await available(), true, name);
    await run(take);
    assert.equal(await available(), false, name);
    assert.equal((await order()).body.error.reason, 'capacity_unavailable', name);
    await run(giveBack);
  }
  assert.equal((await order()).status, 201);
});
