import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Answer, type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };

async function names(key: string, query: string): Promise<string[]> {
  const answer = await call('GET', `/api/v2/servers?${query}`, { key });
  assert.equal(answer.status, 200, `${query}: ${answer.text}`);
  assert.equal(answer.body.pagination.total, answer.body.servers.length);
  return answer.body.servers.map((server: { name: string }) => server.name).sort();
}

test('API-4.8: the list is filtered by status, name, plan, location, labels and moment of creation', async () => {
  const customer = await world.createCustomer('Filters');
  const key = await world.createKey(customer);
  const create = (name: string, labels: Record<string, string>) =>
    call('POST', '/api/v2/servers', { key, body: { ...order, name, labels } });
  await create('a', { env: 'prod', tier: 'web' });
  await create('b', { env: 'prod', old: '' });
  const { body } = await create('c', { env: 'test' });
  for (const [query, wanted] of [
    ['label=env%3Dprod', ['a', 'b']],
    ['label=env%3Dprod,!old', ['a']],
    ['label=env%3D%3Dtest', ['c']],
    ['label=env!%3Dprod', ['c']],
    ['label=tier!%3Dweb', ['b', 'c']],
    ['label=old', ['b']],
    ['label=old%3D', ['b']],
    ['label=nothing', []],
    ['name=b', ['b']],
    ['plan=small', ['a', 'b', 'c']],
    ['plan=huge', []],
    ['location=fra', ['a', 'b', 'c']],
    ['location=nyc', []],
    ['status=queued,running', ['a', 'b', 'c']],
    ['status=running', []],
    ['created_after=2020-01-01T00:00:00Z', ['a', 'b', 'c']],
    [`created_after=${encodeURIComponent(body.created_at)}&name=a`, []],
    ['created_after=2999-01-01', []],
  ] as const)
    assert.deepEqual(await names(key, query), wanted, query);
  for (const query of [
    'label=a b',
    'label=',
    'label=%3Dx',
    'created_after=yesterday',
    'sort=price',
    'limit=201',
  ])
    assert.equal((await call('GET', `/api/v2/servers?${query}`, { key })).status, 422, query);
});

test('plan and location filter by slug and by id, as an order names them', async () => {
  const customer = await world.createCustomer('Ids');
  const key = await world.createKey(customer);
  await world.deploy(customer.tenant, 'ids');
  const { plan, location } = (await call('GET', '/api/v2/servers', { key })).body.servers[0];
  for (const query of [
    `plan=${plan.id}`,
    `plan=${plan.slug}`,
    `location=${location.id}`,
    `location=${location.slug}`,
  ])
    assert.equal((await call('GET', `/api/v2/servers?${query}`, { key })).body.pagination.total, 1, query);
  for (const query of ['plan=999999', 'location=999999'])
    assert.equal((await call('GET', `/api/v2/servers?${query}`, { key })).body.pagination.total, 0, query);
});

test('API-4.8: pages follow one another in every order, and a server created or destroyed between them shifts no other', async () => {
  const customer = await world.createCustomer('Pages');
  const key = await world.createKey(customer);
  const made: string[] = [];
  for (const name of ['m', 'b', 'z', 'a', 'q', 'b']) {
    await world.deploy(customer.tenant, name);
    made.push(name);
  }
  const sorted = made.toSorted();
  for (const [sort, wanted] of [
    ['created_at', made],
    ['-created_at', made.toReversed()],
    ['name', sorted],
    ['-name', sorted.toReversed()],
  ] as const) {
    const seen: string[] = [];
    let path: string | null = `/api/v2/servers?limit=2&sort=${sort}`;
    while (path !== null) {
      const answer: Answer = await call('GET', path, { key });
      seen.push(...answer.body.servers.map((server: { name: string }) => server.name));
      const next: RegExpExecArray | null = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '');
      path = next?.[1] ?? null;
      if (path !== null) assert.match(path, new RegExp(`sort=${sort}`));
    }
    assert.deepEqual(seen, wanted, sort);
  }
  const encoded = async (coding: string) => {
    const answer = await call('GET', '/api/v2/servers', { key, headers: { 'accept-encoding': coding } });
    assert.match(answer.headers.get('vary')!, /Accept-Encoding/);
    return [answer.headers.get('content-encoding'), answer.headers.get('etag')];
  };
  const [[gzip, tag], [identity, sameTag]] = [await encoded('gzip'), await encoded('identity')];
  assert.deepEqual([gzip, identity, tag], ['gzip', null, sameTag]);
  const first = await call('GET', '/api/v2/servers?limit=2&sort=created_at', { key });
  const last = first.body.servers[1].id;
  await world.servers.destroyServer(systemActor, null, last);
  await world.jobs.drain();
  const cursor = first.body.pagination.next_cursor;
  const second = await call('GET', `/api/v2/servers?limit=2&sort=created_at&cursor=${cursor}`, { key });
  assert.deepEqual(
    second.body.servers.map((server: { name: string }) => server.name),
    ['z', 'a'],
    'the page goes on where it ended, although its last server is gone',
  );
  for (const wrong of ['x', 'W10', cursor.slice(2), 'bnVsbA'])
    assert.equal(
      (await call('GET', `/api/v2/servers?cursor=${wrong}`, { key })).body.error.reason,
      'invalid_cursor',
    );
  const other = await call('GET', `/api/v2/servers?sort=name&cursor=${cursor}`, { key });
  assert.equal(other.body.error.reason, 'invalid_cursor', 'a cursor belongs to its order');
});

test('a server is renamed and labelled: what is given changes, null takes a label away, the rest stays', async () => {
  const customer = await world.createCustomer('Words');
  const key = await world.createKey(customer);
  const created = await call('POST', '/api/v2/servers', {
    key,
    body: { ...order, name: 'old', labels: { env: 'prod', tier: 'web' } },
  });
  const path = `/api/v2/servers/${created.body.id}`;
  const patch = (body: object, by = key) => call('PATCH', path, { key: by, body });
  const tag = (await call('GET', path, { key })).headers.get('etag')!;
  const changed = await patch({ name: 'new', labels: { tier: null, owner: 'me' } });
  assert.equal(changed.status, 200);
  assert.deepEqual(
    [changed.body.name, changed.body.hostname, changed.body.labels],
    ['new', 'old', { env: 'prod', owner: 'me' }],
  );
  const after = await call('GET', path, { key, headers: { 'if-none-match': tag } });
  assert.equal(after.status, 200, 'the old tag does not fit any more');
  assert.equal((await patch({ hostname: 'new.example.net' })).body.hostname, 'new.example.net');
  assert.equal((await patch({})).body.name, 'new');
  for (const body of [
    { name: '' },
    { name: ' x' },
    { name: 'x'.repeat(65) },
    { hostname: 'Ü' },
    { labels: { 'a b': 'x' } },
    { labels: { a: 1 } },
    { label: {} },
    { plan: 'small' },
    { labels: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`l${index}`, 'x'])) },
  ])
    assert.equal((await patch(body)).status, 422, JSON.stringify(body));
  const reader = await world.createKey(customer, 'read');
  assert.equal((await patch({ name: 'x' }, reader)).body.error.reason, 'read_only_key');
  const stranger = await world.createKey(await world.createCustomer('Stranger'));
  assert.equal((await patch({ name: 'stolen', nonsense: 1 }, stranger)).status, 404);
  assert.equal((await call('GET', path, { key })).body.name, 'new');
});

test('API-5.5: a dry run says what a create would do and cost, by the same rules, and does nothing', async () => {
  const customer = await world.createCustomer('Dry');
  const key = await world.createKey(customer);
  const dry = (more: object = {}) =>
    call('POST', '/api/v2/servers', { key, body: { ...order, ...more, dry_run: true } });
  const rows = async () =>
    (
      await world.database.pool.query(
        `select (select count(*) from server_orders where tenant_id = $1) as orders,
           (select count(*) from servers where tenant_id = $1) as servers,
           (select count(*) from charges where tenant_id = $1) as charges,
           (select count(*) from allocations where tenant_id = $1) as addresses`,
        [customer.tenant.id],
      )
    ).rows[0];
  await world.setBalance(customer.tenant, 10_000);
  assert.deepEqual((await dry()).body, {
    would_create: true,
    eligible: true,
    reason: null,
    due_now: '0.00',
    price_hourly: '0.006',
    price_monthly_cap: '4.00',
    currency: 'USD',
    credit_after_first_day: '0.856',
  });
  await world.setBalance(customer.tenant, 0);
  const poor = await dry();
  assert.deepEqual(
    [poor.status, poor.body.would_create, poor.body.eligible, poor.body.reason],
    [200, false, false, 'credit_required'],
  );
  const real = await call('POST', '/api/v2/servers', { key, body: order });
  assert.equal(real.body.error.reason, poor.body.reason, 'the real call says the same');
  await world.saveCard(customer.tenant);
  assert.deepEqual([(await dry()).body.due_now, (await dry()).body.would_create], ['4.00', true]);
  assert.equal((await dry({ plan: 'huge' })).status, 422);
  assert.deepEqual(await rows(), { orders: 0, servers: 0, charges: 0, addresses: 0 });
});

test('a location without capacity is refused before the charge, and a closed node gets no server', async () => {
  await using full = await createWorld();
  const ask = createApiClient(full.url);
  const customer = await full.createCustomer('Full');
  const key = await full.createKey(customer);
  const [node] = await full.clusters.listNodes(systemActor, null);
  await full.clusters.changeNode(systemActor, node!.id, { memoryMb: 5_000 });
  const create = () => ask('POST', '/api/v2/servers', { key, body: order });
  const answers = await Promise.all([create(), create(), create()]);
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [201, 201, 503], 'two of 2,048 MiB fit');
  const refused = answers.find((answer) => answer.status === 503)!;
  assert.equal(refused.body.error.reason, 'capacity_unavailable');
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  const { rows } = await full.database.pool.query('select count(*) as n from server_orders');
  assert.equal(rows[0].n, 2);
  const gone = answers.find((answer) => answer.status === 201)!.body.id;
  await full.jobs.drain();
  await ask('DELETE', `/api/v2/servers/${gone}`, { key });
  assert.equal((await create()).status, 503, 'room comes back with the end of the guest, not with the wish');
  await full.jobs.drain();
  await full.clusters.changeNode(systemActor, node!.id, { isOpen: false });
  assert.equal((await create()).status, 503);
  await full.clusters.changeNode(systemActor, node!.id, { isOpen: true });
  assert.equal((await create()).status, 201);
  const [after] = await full.clusters.listNodes(systemActor, null);
  assert.deepEqual([after!.guestCount, after!.used.memoryMb], [2, 4_096]);
});
