import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock, worldStartMs } from '#operations/testing/world-time.ts';
import { type Answer, type Call, createApiClient } from './testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };
const quota = (answer: Answer) =>
  ['limit', 'remaining', 'used'].map((name) => answer.headers.get(`x-api-quota-${name}`));
const uncounted = [null, null, null];
const countOf = (tenant: Tenant) => world.metering.countOfMonth(tenant.id);

/** An organization without money: its gate answers 402. */
async function createPoor(name: string): Promise<{ owner: Person; tenant: Tenant }> {
  const customer = await world.createCustomer(name);
  await world.database.pool.query('delete from ledger_entries where tenant_id = $1', [customer.tenant.id]);
  await world.database.pool.query('delete from credit_balances where tenant_id = $1', [customer.tenant.id]);
  return customer;
}

test('API-8.3: what an endpoint itself answers is counted, errors included', async () => {
  const customer = await world.createCustomer('Counted');
  const key = await world.createKey(customer);
  const calls: [number, string, string, object?][] = [
    [200, 'GET', '/api/v1/servers'],
    [200, 'HEAD', '/api/v2/servers'],
    [404, 'GET', '/api/v2/servers/999999'],
    [404, 'GET', '/api/v2/servers/not-an-id'],
    [
      400,
      'POST',
      '/api/v2/servers',
      { raw: '{"plan": 1, "plan": 2}', headers: { 'content-type': 'application/json' } },
    ],
    [422, 'POST', '/api/v1/servers', { body: { plan: 'unknown', image: 'debian-12' } }],
    [
      415,
      'POST',
      '/api/v2/servers',
      { raw: 'plan=small', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    [415, 'POST', '/api/v2/servers', { raw: '{}', headers: { 'content-type': 'not a type' } }],
    [
      413,
      'POST',
      '/api/v2/servers',
      { raw: `"${'x'.repeat(300_000)}"`, headers: { 'content-type': 'application/json' } },
    ],
    [404, 'GET', '/api/v2/servers?tenant=unknown'],
    [400, 'GET', `/api/v2/servers?tenant=${customer.tenant.id}`, { headers: { 'x-tenant-id': 'unknown' } }],
    [400, 'GET', '/api/v2/servers?cursor=nonsense'],
    [201, 'POST', '/api/v2/servers', { body: order }],
    [200, 'GET', '/api/v2/tenants'],
  ];
  let used = 0;
  for (const [status, method, path, options] of calls) {
    used += 1;
    const answer = await call(method, path, { key, ...options });
    assert.equal(answer.status, status, `${method} ${path}: ${answer.text.slice(0, 300)}`);
    assert.deepEqual(quota(answer), ['5000', String(5_000 - used), String(used)], `${method} ${path}`);
  }
  const tag = (await call('GET', '/api/v2/tenants', { key })).headers.get('etag')!;
  const unchanged = await call('GET', '/api/v2/tenants', { key, headers: { 'if-none-match': tag } });
  assert.equal(unchanged.status, 304);
  assert.equal(unchanged.headers.get('x-api-quota-used'), String(used + 2));
  assert.equal(await countOf(customer.tenant), used + 2);
});

test('API-8.4: 401, OPTIONS, locked 402 and 403, and a read key on a mutating method are not counted', async () => {
  const customer = await world.createCustomer('Uncounted');
  const full = await world.createKey(customer);
  const read = await world.createKey(customer, 'read');
  const options = await call('OPTIONS', '/api/v2/servers', { key: full });
  assert.deepEqual([options.status, quota(options)], [204, uncounted]);
  const denied = await call('POST', '/api/v2/servers', { key: read, body: order });
  assert.deepEqual(
    [denied.status, denied.body.error.reason, quota(denied)],
    [403, 'read_only_key', uncounted],
  );
  assert.deepEqual(quota(await call('GET', '/api/v2/servers')), uncounted);
  const other = await call('PATCH', '/api/v2/servers', { key: full });
  assert.deepEqual(
    [other.status, other.headers.get('allow'), quota(other)],
    [405, 'OPTIONS, GET, HEAD, POST', uncounted],
  );
  for (const path of ['/api/v2/servers//snapshots', '/api/v1/networks//sync', '/api/v2/nothing']) {
    const unrouted = await call(path.endsWith('sync') ? 'POST' : 'GET', path, { key: full });
    assert.deepEqual([unrouted.status, quota(unrouted)], [404, uncounted], path);
  }
  await world.accounts.setTenantStatus(systemActor, customer.tenant.id, 'SUSPENDED');
  const suspended = await call('GET', '/api/v1/servers', { key: full });
  assert.deepEqual([suspended.status, suspended.body.error.reason], [403, 'account_suspended']);
  assert.deepEqual(quota(suspended), uncounted);
  assert.equal(await countOf(customer.tenant), 0);
  const poor = await createPoor('Poor');
  const locked = await call('GET', '/api/v2/servers', { key: await world.createKey(poor) });
  assert.deepEqual([locked.status, locked.body.error.reason], [402, 'hourly_not_eligible']);
  assert.deepEqual(quota(locked), uncounted);
  assert.equal(await countOf(poor.tenant), 0);
});

test('API-8.a: the 121st request of a key within a minute is a 429, which is not counted', async () => {
  await using small = await createWorld({ requestsPerMinute: 5, clockStartMs: worldStartMs });
  const ask = createApiClient(small.url);
  const customer = await small.createCustomer('Busy');
  const key = await small.createKey(customer);
  const answers: Answer[] = [];
  for (let i = 0; i < 6; i += 1) answers.push(await ask('GET', '/api/v2/servers', { key }));
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [200, 200, 200, 200, 200, 429],
  );
  assert.match(answers[0]!.headers.get('ratelimit')!, /^"key";r=4;t=60$/);
  assert.equal(answers[0]!.headers.get('ratelimit-policy'), '"key";q=5;w=60');
  const last = answers[5]!;
  assert.equal(last.body.error.reason, 'key_rate');
  assert.match(last.headers.get('ratelimit')!, /^"key";r=0;t=\d+$/);
  assert.equal(last.headers.get('retry-after'), /t=(\d+)/.exec(last.headers.get('ratelimit')!)![1]);
  assert.deepEqual(quota(last), uncounted);
  assert.equal(await small.metering.countOfMonth(customer.tenant.id), 5);
  const other = await small.createKey(customer);
  assert.equal(
    (await ask('GET', '/api/v2/servers', { key: other })).status,
    200,
    'each key has its own budget',
  );
});

test('API-8.2: budget comes before gate, gate before scope, scope before count', async () => {
  await using small = await createWorld({ requestsPerMinute: 1, clockStartMs: worldStartMs });
  const ask = createApiClient(small.url);
  const customer = await small.createCustomer('Order');
  await small.accounts.setTenantStatus(systemActor, customer.tenant.id, 'SUSPENDED');
  const read = await small.createKey(customer, 'read');
  const first = await ask('POST', '/api/v2/servers', { key: read, body: order });
  assert.deepEqual([first.status, first.body.error.reason], [403, 'account_suspended']);
  const second = await ask('POST', '/api/v2/servers', { key: read, body: order });
  assert.deepEqual([second.status, second.body.error.reason], [429, 'key_rate']);
  await small.accounts.setTenantStatus(systemActor, customer.tenant.id, 'ACTIVE');
  const third = await ask('POST', '/api/v2/servers', {
    key: await small.createKey(customer, 'read'),
    raw: 'not json',
    headers: { 'content-type': 'application/json' },
  });
  assert.deepEqual([third.status, third.body.error.reason], [403, 'read_only_key']);
  assert.equal(await small.metering.countOfMonth(customer.tenant.id), 0);
});

test('API-8.1: concurrent requests of one account get the numbers 1 to N, each once, and keys add up', async () => {
  const customer = await world.createCustomer('Crowd');
  const keys = await Promise.all([1, 2, 3].map(() => world.createKey(customer)));
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, i) => call('GET', '/api/v2/servers', { key: keys[i % 3]! })),
  );
  const used = answers.map((answer) => Number(answer.headers.get('x-api-quota-used'))).sort((a, b) => a - b);
  assert.deepEqual(
    used,
    Array.from({ length: 300 }, (_, i) => i + 1),
  );
  const { rows } = await world.database.pool.query(
    'select count from usage_key_months where tenant_id = $1 order by key_id',
    [customer.tenant.id],
  );
  assert.deepEqual(
    rows.map((row) => row.count),
    [100, 100, 100],
  );
});

test('API-8.8: what remains of the quota is never below zero', async () => {
  await using small = await createWorld({ includedPerMonth: 1 });
  const ask = createApiClient(small.url);
  const key = await small.createKey(await small.createCustomer('Over'));
  const seen = [];
  for (let i = 0; i < 3; i += 1) seen.push(quota(await ask('GET', '/api/v2/servers', { key })));
  assert.deepEqual(seen, [
    ['1', '0', '1'],
    ['1', '0', '2'],
    ['1', '0', '3'],
  ]);
});

test('API-8.1: a new UTC month by the database’s clock starts at one', async () => {
  await using later = await createWorld();
  const ask = createApiClient(later.url);
  const key = await later.createKey(await later.createCustomer('Months'));
  await ask('GET', '/api/v2/servers', { key });
  await moveWorldClock(later.database, '32 days');
  const answer = await ask('GET', '/api/v2/servers', { key });
  assert.equal(answer.headers.get('x-api-quota-used'), '1');
});

test('API-8.5: a request whose use can not be recorded succeeds, without quota headers', async () => {
  await using broken = await createWorld();
  const ask = createApiClient(broken.url);
  const key = await broken.createKey(await broken.createCustomer('Broken'));
  await broken.database.pool.query('alter table usage_months rename to usage_months_away');
  const answer = await ask('GET', '/api/v2/servers', { key });
  assert.deepEqual([answer.status, quota(answer)], [200, uncounted]);
  assert.equal(broken.metering.failedCounts, 1);
});
