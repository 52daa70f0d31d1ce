import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Answer, type Call, createApiClient } from '../testing/client.ts';
import { customerOf, networkOf } from '../testing/network-calls.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld({ networksMax: 4 });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };
const comparable = (answer: Answer) => answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID');
const errorOf = (answer: Answer) => [answer.status, answer.body.error.reason ?? answer.body.error.code];

const customerWithKey = (name: string) => customerOf(world, name);
const createNetwork = (key: string, body: object = {}) => networkOf(call, key, body);

test('API-4.7: a network is created, listed, read, changed and deleted, in both versions', async () => {
  const { key, tenant } = await customerWithKey('Life');
  const created = await call('POST', '/api/v1/networks', {
    key,
    body: {
      name: 'backend',
      cidr: '10.20.0.0/24',
      labels: { env: 'prod', team: 'a' },
      tenant: 'ignored by v1',
    },
  });
  assert.equal(created.status, 201);
  const { id } = created.body;
  assert.equal(created.headers.get('location'), `/api/v1/networks/${id}`);
  assert.deepEqual(
    [created.body.tenant_id, created.body.cidr, created.body.sync.state, created.body.available_ips],
    [tenant.id, '10.20.0.0/24', 'pending', 253],
  );
  await world.jobs.drain();
  const read = await call('GET', `/api/v2/networks/${id}`, { key });
  assert.equal(read.body.sync.state, 'synced');
  assert.deepEqual(read.body.members, []);
  const changed = await call('PATCH', `/api/v2/networks/${id}`, {
    key,
    body: { name: 'db', description: 'for databases', labels: { env: 'test', team: null } },
  });
  assert.deepEqual(
    [changed.body.name, changed.body.description, changed.body.labels],
    ['db', 'for databases', { env: 'test' }],
  );
  const cidr = { key, body: { cidr: '10.30.0.0/24' } };
  assert.deepEqual(errorOf(await call('PATCH', `/api/v2/networks/${id}`, cidr)), [422, 'immutable_field']);
  await createNetwork(key, { name: 'other' });
  const list = (query: string) => call('GET', `/api/v2/networks?${query}`, { key });
  const names = (answer: Answer) => answer.body.networks.map((one: { name: string }) => one.name);
  assert.deepEqual((await list('')).body.limits, { max: 4, used: 2 });
  assert.equal((await call('GET', '/api/v2/tenants', { key })).body.tenants[0].network_count, 2);
  assert.deepEqual(names(await list('label=env%3Dtest,!team')), ['db']);
  assert.deepEqual(names(await list('label=!env')), ['other']);
  assert.deepEqual(names(await list('name=other')), ['other']);
  assert.deepEqual(errorOf(await list('label=%21a%3Db')), [422, 'invalid_fields']);
  const first = await list('limit=1');
  assert.deepEqual(names(first), ['db']);
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link')!)![1]!;
  assert.deepEqual(names(await call('GET', next, { key })), ['other']);
  assert.deepEqual(errorOf(await list('cursor=bmV0d29ya3M6MA')), [400, 'invalid_cursor']);
  assert.equal((await call('DELETE', `/api/v2/networks/${id}`, { key })).status, 204);
  assert.equal((await call('GET', `/api/v2/networks/${id}`, { key })).status, 404);
});

test('API-4.7: blocks are private ones of /16 to /29 that no other network of the account touches', async () => {
  const { key } = await customerWithKey('Blocks');
  const attempt = (cidr: string) => call('POST', '/api/v2/networks', { key, body: { name: 'n', cidr } });
  for (const cidr of [
    '8.8.8.0/24',
    '10.0.0.0/15',
    '10.0.0.0/30',
    '10.0.0.1/24',
    '172.32.0.0/16',
    '192.168.0.0/33',
    'fd00::/64',
    '10.0.0.0',
    'x',
  ]) {
    const answer = await attempt(cidr);
    assert.deepEqual(errorOf(answer), [422, 'cidr_not_allowed'], cidr);
    assert.deepEqual(answer.body.error.details, {
      allowed_ranges: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
      min_prefix: 16,
      max_prefix: 29,
    });
  }
  assert.equal((await attempt('172.31.0.0/16')).status, 201);
  for (const cidr of ['172.31.0.0/16', '172.31.255.248/29'])
    assert.deepEqual(errorOf(await attempt(cidr)), [422, 'cidr_overlap']);
  assert.equal((await attempt('10.10.0.0/29')).status, 201);
  assert.equal((await createNetwork(key)).cidr, '10.10.1.0/24');
  assert.equal((await createNetwork(key)).cidr, '10.10.2.0/24');
  const full = await attempt('192.168.0.0/24');
  assert.deepEqual(errorOf(full), [422, 'limit_exceeded']);
  assert.deepEqual(full.body.error.details, { limit: 'networks', max: 4, used: 4 });
  const other = await customerWithKey('Same blocks');
  assert.equal((await createNetwork(other.key, { cidr: '172.31.0.0/16' })).cidr, '172.31.0.0/16');
});

test('API-4.7: twenty creations at once neither pass the cap nor overlap', async () => {
  const { key } = await customerWithKey('Crowd');
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => call('POST', '/api/v2/networks', { key, body: { name: 'n' } })),
  );
  const made = answers.filter((answer) => answer.status === 201);
  assert.equal(made.length, 4);
  assert.equal(new Set(made.map((answer) => answer.body.cidr)).size, 4);
  for (const answer of answers.filter((one) => one.status !== 201))
    assert.deepEqual(errorOf(answer), [422, 'limit_exceeded']);
  const { key: second } = await customerWithKey('Same block at once');
  const same = await Promise.all(
    Array.from({ length: 4 }, () =>
      call('POST', '/api/v2/networks', { key: second, body: { name: 'n', cidr: '10.1.0.0/24' } }),
    ),
  );
  assert.deepEqual(same.map((answer) => answer.status).sort(), [201, 422, 422, 422]);
});

test('API-4.3: a network with members is not deleted; one whose last members are leaving says when to try again', async () => {
  const { key, tenant } = await customerWithKey('In use');
  const network = await createNetwork(key);
  const { serverId } = await world.deploy(tenant, 'member');
  const path = `/api/v2/servers/${serverId}/networks`;
  await call('POST', path, { key, body: { network_id: network.id } });
  await world.jobs.drain();
  const refused = await call('DELETE', `/api/v2/networks/${network.id}`, { key });
  assert.deepEqual(errorOf(refused), [409, 'network_in_use']);
  assert.deepEqual(refused.body.error.details, { servers: [serverId] });
  assert.deepEqual([refused.body.error.retryable, refused.headers.get('retry-after')], [false, null]);
  await call('DELETE', `${path}/${network.id}`, { key });
  const leaving = await call('DELETE', `/api/v2/networks/${network.id}`, { key });
  assert.deepEqual(errorOf(leaving), [409, 'network_in_use']);
  assert.deepEqual([leaving.body.error.retryable, leaving.headers.get('retry-after')], [true, '5']);
  await world.jobs.drain();
  assert.equal((await call('DELETE', `/api/v2/networks/${network.id}`, { key })).status, 204);
});

test('API-4.3: another account’s, a deleted and a nonexistent network are one 404, on every verb', async () => {
  const [mine, theirs] = [await customerWithKey('Mine'), await customerWithKey('Theirs')];
  const foreign = (await createNetwork(theirs.key)).id;
  const deleted = (await createNetwork(mine.key)).id;
  await call('DELETE', `/api/v2/networks/${deleted}`, { key: mine.key });
  const own = await createNetwork(mine.key);
  const { serverId } = await world.deploy(mine.tenant, 'mine');
  const { serverId: foreignServer } = await world.deploy(theirs.tenant, 'theirs');
  const { key } = mine;
  const answersFor = async (id: number | string) => [
    await call('GET', `/api/v2/networks/${id}`, { key }),
    await call('PATCH', `/api/v1/networks/${id}`, { key, body: { name: 'x' } }),
    await call('PATCH', `/api/v2/networks/${id}`, { key, body: { nonsense: 1 } }),
    await call('DELETE', `/api/v2/networks/${id}`, { key }),
    await call('POST', `/api/v1/networks/${id}/sync`, { key, body: {} }),
    await call('DELETE', `/api/v2/servers/${serverId}/networks/${id}`, { key }),
    ...(typeof id === 'number'
      ? [
          await call('POST', `/api/v2/servers/${serverId}/networks`, { key, body: { network_id: id } }),
          await call('POST', '/api/v2/servers', { key, body: { ...order, network_id: id } }),
        ]
      : []),
  ];
  const expected = (await answersFor(999_999)).map(comparable);
  for (const answer of await answersFor(999_999)) assert.equal(answer.status, 404);
  assert.deepEqual((await answersFor(foreign)).map(comparable), expected);
  assert.deepEqual((await answersFor(deleted)).map(comparable), expected);
  assert.deepEqual((await answersFor('x')).map(comparable), expected.slice(0, 6));
  for (const id of [foreignServer, 999_999]) {
    const path = `/api/v2/servers/${id}/networks`;
    assert.equal((await call('GET', path, { key })).status, 404);
    assert.equal((await call('POST', path, { key, body: { network_id: own.id } })).status, 404);
    assert.equal((await call('DELETE', `${path}/${own.id}`, { key })).status, 404);
  }
  const servers = await call('GET', `/api/v2/servers?network_id=${foreign}`, { key });
  assert.equal(servers.body.pagination.total, 0);
});

test('API-4.6: a read key lists and reads networks, and changes nothing', async () => {
  const customer = await customerWithKey('Reader');
  const read = await world.createKey(customer, 'read');
  const network = await createNetwork(customer.key);
  assert.equal((await call('GET', '/api/v2/networks', { key: read })).body.networks.length, 1);
  for (const [method, path] of [
    ['POST', '/api/v2/networks'],
    ['PATCH', `/api/v2/networks/${network.id}`],
    ['DELETE', `/api/v2/networks/${network.id}`],
    ['POST', `/api/v2/networks/${network.id}/sync`],
  ] as const)
    assert.deepEqual(errorOf(await call(method, path, { key: read, body: {} })), [403, 'read_only_key']);
});
