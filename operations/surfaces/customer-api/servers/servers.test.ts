import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Answer, type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
let isHypervisorBroken = false;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (isHypervisorBroken) throw new CodedError('hypervisor.refused', 'node-7 says no');
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };
const comparable = (answer: Answer) => ({
  status: answer.status,
  text: answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID'),
  headers: [...answer.headers].filter(
    ([name]) => !/^(x-request-id|date|ratelimit|x-api-quota-.*)$/.test(name),
  ),
});

async function createFailed(key: string): Promise<number> {
  isHypervisorBroken = true;
  const { body } = await call('POST', '/api/v2/servers', { key, body: order });
  await world.jobs.drain();
  isHypervisorBroken = false;
  return body.id;
}

test('API-2.3.b: the 201 of creation carries the order’s root password, and nothing else ever does', async () => {
  const customer = await world.createCustomer('Password');
  const key = await world.createKey(customer);
  const created = await call('POST', '/api/v1/servers', { key, body: { ...order, name: 'web-1' } });
  assert.equal(created.status, 201);
  assert.equal(created.headers.get('location'), `/api/v1/servers/${created.body.id}`);
  assert.equal(created.headers.get('cache-control'), 'no-store');
  const { rows } = await world.database.pool.query('select root_password from server_orders where id = $1', [
    created.body.order_id,
  ]);
  assert.equal(created.body.root_password, rows[0].root_password);
  await world.jobs.drain();
  const path = `/api/v2/servers/${created.body.id}`;
  const others = [
    await call('GET', path, { key }),
    await call('GET', '/api/v2/servers', { key }),
    await call('POST', `${path}/actions`, { key, body: { action: 'reboot' } }),
    await call('GET', `${path}/actions`, { key }),
    await call('GET', '/api/v2/tenants', { key }),
  ];
  for (const answer of others) assert.ok(!answer.text.includes(created.body.root_password), answer.text);
});

test('API-2.3.a: a server carries its private networks as a list', async () => {
  const key = await world.createKey(await world.createCustomer('Networks'));
  const created = await call('POST', '/api/v2/servers', { key, body: order });
  assert.deepEqual(created.body.private_networks, []);
});

test('API-3.1: on positive credit the order is PAID with $0.00 due and provisioning is queued at once', async () => {
  const customer = await world.createCustomer('Credit');
  const key = await world.createKey(customer);
  const before = await world.billing.balanceOf(systemActor, customer.tenant.id);
  const { body } = await call('POST', '/api/v2/servers', { key, body: order });
  assert.equal(body.provisioning_state, 'queued');
  const orders = await world.database.pool.query(
    'select state, due_quanta, paid_at is not null as paid from server_orders where id = $1',
    [body.order_id],
  );
  assert.deepEqual(orders.rows, [{ state: 'paid', due_quanta: 0, paid: true }]);
  const jobs = await world.database.pool.query(
    "select 1 from jobs where kind = 'servers.provision' and payload ->> 'server_id' = $1",
    [String(body.id)],
  );
  assert.equal(jobs.rowCount, 1);
  assert.equal(await world.billing.balanceOf(systemActor, customer.tenant.id), before);
  assert.equal((await call('GET', `/api/v2/servers/${body.id}`, { key })).status, 200, 'read your writes');
  await world.jobs.drain();
  const ready = await call('GET', `/api/v2/servers/${body.id}`, { key });
  assert.deepEqual(
    [ready.body.status, ready.body.provisioning_state, ready.body.locked],
    ['running', 'ready', false],
  );
});

test('API-5.5: another server needs credit above zero: 402 credit_required, and nothing is queued', async () => {
  const customer = await world.createCustomer('Spent');
  const key = await world.createKey(customer);
  await world.database.pool.query('update credit_balances set balance_quanta = 0 where tenant_id = $1', [
    customer.tenant.id,
  ]);
  const answer = await call('POST', '/api/v2/servers', { key, body: order });
  assert.deepEqual(
    [answer.status, answer.body.error.code, answer.body.error.reason],
    [402, 'payment_required', 'credit_required'],
  );
  assert.equal(answer.headers.get('x-api-quota-used'), '1', 'a 402 of the endpoint is counted');
  const { rows } = await world.database.pool.query(
    'select (select count(*) from server_orders where tenant_id = $1) + (select count(*) from servers where tenant_id = $1) as n',
    [customer.tenant.id],
  );
  assert.equal(rows[0].n, 0);
});

test('API-4.2: another’s, a destroyed and a nonexistent server are one 404 on every verb', async () => {
  const mine = await world.createCustomer('Mine');
  const key = await world.createKey(mine);
  const other = await world.createCustomer('Other');
  const foreign = (await world.deploy(other.tenant, 'foreign')).serverId;
  const destroyed = (await world.deploy(mine.tenant, 'destroyed')).serverId;
  assert.equal((await call('DELETE', `/api/v2/servers/${destroyed}`, { key })).status, 202);
  await world.jobs.drain();
  for (const version of ['v1', 'v2']) {
    for (const [method, tail, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/actions'],
      ['POST', '/actions', { action: 'stop' }],
      ['POST', '/actions', { action: 'nonsense', more: 1 }],
    ] as const) {
      const ask = (id: number | string) =>
        call(method, `/api/${version}/servers/${id}${tail}`, { key, ...(body ? { body } : {}) });
      const wanted = comparable(await ask(888_888));
      assert.equal(wanted.status, 404, `${method} ${tail}`);
      for (const id of [foreign, destroyed, 'x', '0', '1e3', '99999999999999999999']) {
        const answer = comparable(await ask(id));
        const text = (given: typeof answer) =>
          JSON.stringify(given).replaceAll(String(id), 'N').replaceAll('888888', 'N');
        assert.equal(text(answer), text(wanted), `${method} ${id}${tail}`);
      }
    }
  }
  const alive = await world.servers.findServer(systemActor, null, foreign);
  assert.equal(alive?.powerState, 'running');
});

test('API-3.4: destroying a server in failed provisioning is a 409 that changes nothing', async () => {
  const customer = await world.createCustomer('Failed');
  const key = await world.createKey(customer);
  const id = await createFailed(key);
  const failed = await call('GET', `/api/v2/servers/${id}`, { key });
  assert.equal(failed.body.provisioning_state, 'failed', 'API-2.3.c');
  assert.equal(failed.body.failure.operator_action_required, true);
  assert.ok(!failed.text.includes('node-7 says'), 'what the hypervisor said is not for customers');
  const answer = await call('DELETE', `/api/v1/servers/${id}`, { key });
  assert.deepEqual([answer.status, answer.body.error.reason], [409, 'provisioning_failed']);
  await world.jobs.drain();
  assert.equal((await call('GET', `/api/v2/servers/${id}`, { key })).body.status, 'failed');
  await world.servers.retryProvisioning(systemActor, id);
  await world.jobs.drain();
  assert.equal((await call('GET', `/api/v2/servers/${id}`, { key })).body.status, 'running');
});

test('API-4.8: a destroyed server is 202 with one action while it goes, then not found', async () => {
  const customer = await world.createCustomer('Destroy');
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'short-lived');
  const path = `/api/v2/servers/${serverId}`;
  const first = await call('DELETE', path, { key });
  const again = await call('DELETE', path, { key });
  assert.deepEqual([first.status, again.status, again.body.id], [202, 202, first.body.id]);
  assert.equal(first.body.command, 'destroy');
  assert.equal((await call('GET', path, { key })).body.status, 'deleting');
  await world.jobs.drain();
  assert.equal((await call('GET', path, { key })).status, 404);
  const list = await call('GET', '/api/v2/servers', { key });
  assert.deepEqual([list.body.servers, list.body.pagination.total], [[], 0]);
  const { rows } = await world.database.pool.query(
    'select (select count(*) from allocations where server_id = $1 and released_at is null) as held, (select count(*) from destroy_notices where server_id = $1) as notices',
    [serverId],
  );
  assert.deepEqual(rows, [{ held: 0, notices: 1 }]);
});

test('API-4.c: shutdown halts, aliases are understood, what is so already is told, pause does not exist', async () => {
  const customer = await world.createCustomer('Power');
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'power');
  const path = `/api/v1/servers/${serverId}`;
  const act = (action: string) => call('POST', `${path}/actions`, { key, body: { action } });
  const shutdown = await act('shutdown');
  assert.deepEqual([shutdown.status, shutdown.body.command, shutdown.body.changed], [202, 'shutdown', true]);
  assert.equal((await call('GET', path, { key })).body.status, 'stopping');
  const busy = await act('start');
  assert.deepEqual([busy.status, busy.body.error.reason], [409, 'server_busy']);
  assert.equal(busy.body.error.details.action_id, shutdown.body.id);
  await world.jobs.drain();
  assert.equal((await call('GET', path, { key })).body.status, 'stopped');
  const actions = await call('GET', `${path}/actions`, { key });
  assert.deepEqual([actions.body.actions[0].status, actions.body.actions[0].outcome], ['success', 'stopped']);
  const again = await act('power_off');
  assert.deepEqual([again.status, again.body.command, again.body.changed], [200, 'stop', false]);
  assert.equal((await act('reboot')).body.error.reason, 'server_not_ready');
  assert.equal((await act('poweron')).body.command, 'start');
  await world.jobs.drain();
  const pause = await act('pause');
  assert.deepEqual([pause.status, pause.body.error.reason], [422, 'unsupported_action']);
  assert.ok(pause.body.error.fields[0].allowed.includes('shutdown'));
});

test('API-4.4: only hourly billing; unknown fields and names are refused with what would be right', async () => {
  const key = await world.createKey(await world.createCustomer('Fields'));
  const ask = (body: object) => call('POST', '/api/v2/servers', { key, body });
  const monthly = await ask({ ...order, billing_cycle: 'monthly' });
  assert.deepEqual([monthly.status, monthly.body.error.reason], [422, 'billing_cycle_not_supported']);
  assert.equal((await ask({ ...order, billing_cycle: 'hourly' })).status, 201);
  const typo = await ask({ plan: 'small', image: 'debian-12', locaton: 'fra' });
  assert.match(typo.body.error.fields[0].message, /did you mean `location`/);
  const unknown = await ask({ plan: 'huge', image: 'debian-12' });
  assert.deepEqual(unknown.body.error.fields, [
    { path: 'plan', code: 'unknown_value', message: 'There is no such plan.', allowed: ['small'] },
  ]);
  for (const body of [
    [],
    'text',
    null,
    { plan: {}, image: [] },
    { ...order, labels: { 'a b': 'x' } },
    { ...order, hostname: 'Ü' },
  ])
    assert.equal((await ask(body as object)).status, 422, JSON.stringify(body));
});

test('a host name that is made of a name is one that a change takes', async () => {
  const key = await world.createKey(await world.createCustomer('Hosts'));
  for (const name of ['Web 1', 'web-.example', 'a..b', `${'x'.repeat(63)}y`, '.-.', 'Ünï', 'a_.b-']) {
    const made = (await call('POST', '/api/v2/servers', { key, body: { ...order, name } })).body;
    const body = { hostname: made.hostname };
    assert.equal(
      (await call('PATCH', `/api/v2/servers/${made.id}`, { key, body })).status,
      200,
      made.hostname,
    );
  }
});

test('API-4.5: two creates with the same content are two orders', async () => {
  const key = await world.createKey(await world.createCustomer('Orders'));
  const answers = await Promise.all([1, 2].map(() => call('POST', '/api/v2/servers', { key, body: order })));
  assert.notEqual(answers[0]!.body.order_id, answers[1]!.body.order_id);
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [201, 201],
  );
});

test('API-8.b: twenty creates at once never pass the deploys of an hour; a refused one takes no slot', async () => {
  await using small = await createWorld({ deploysPerHour: 5 });
  const ask = createApiClient(small.url);
  const customer = await small.createCustomer('Rush');
  const key = await small.createKey(customer);
  const wrong = await ask('POST', '/api/v2/servers', { key, body: { plan: 'huge', image: 'debian-12' } });
  assert.equal(wrong.status, 422);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ask('POST', '/api/v2/servers', { key, body: order })),
  );
  const statuses = answers.map((answer) => answer.status).sort();
  assert.deepEqual(statuses, [...Array(5).fill(201), ...Array(15).fill(429)]);
  const created = answers.find((answer) => answer.status === 201)!;
  assert.match(created.headers.get('ratelimit-policy')!, /"deploy";q=5;w=3600$/);
  const refused = answers.find((answer) => answer.status === 429)!;
  assert.equal(refused.body.error.reason, 'deploy_rate');
  assert.ok(Number(refused.headers.get('retry-after')) > 3_000);
  assert.ok(refused.headers.get('x-api-quota-used'), 'the 429 of the deploy cap is counted');
});

test('API-4.8: pages of the list follow each other by cursor and link, filters stay', async () => {
  const customer = await world.createCustomer('Pages');
  const key = await world.createKey(customer);
  const ids: number[] = [];
  for (let i = 0; i < 5; i += 1) ids.push((await world.deploy(customer.tenant, `page-${i}`)).serverId);
  for (const [sort, wanted] of [
    ['-created_at', ids.toReversed()],
    ['created_at', ids],
  ] as const) {
    const seen: number[] = [];
    let path: string | null = `/api/v1/servers?limit=2&sort=${sort}&status=running`;
    while (path !== null) {
      const answer: Answer = await call('GET', path, { key });
      assert.equal(answer.body.pagination.total, 5);
      seen.push(...answer.body.servers.map((server: { id: number }) => server.id));
      const next: RegExpExecArray | null = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '');
      assert.equal(next === null, answer.body.pagination.next_cursor === null);
      path = next?.[1] ?? null;
    }
    assert.deepEqual(seen, wanted);
  }
  const stopped = await call('GET', '/api/v2/servers?status=stopped,failed', { key });
  assert.equal(stopped.body.pagination.total, 0);
  assert.equal((await call('GET', '/api/v2/servers?status=gone', { key })).status, 422);
  assert.equal((await call('GET', '/api/v2/servers?limit=0', { key })).status, 422);
  assert.equal((await call('GET', '/api/v2/servers?limit=ten', { key })).status, 422);
});

test('API-5.3, API-4.6: a read key reads every collection and changes nothing', async () => {
  const customer = await world.createCustomer('Reader');
  const key = await world.createKey(customer, 'read');
  const { serverId } = await world.deploy(customer.tenant, 'readable');
  const path = `/api/v2/servers/${serverId}`;
  for (const url of ['/api/v2/servers', '/api/v2/tenants', path, `${path}/actions`])
    assert.equal((await call('GET', url, { key })).status, 200, url);
  for (const [method, url] of [
    ['POST', '/api/v2/servers'],
    ['POST', `${path}/actions`],
    ['DELETE', path],
  ] as const) {
    const headers = { 'x-http-method-override': 'GET' };
    const answer = await call(method, `${url}?_method=GET`, { key, body: {}, headers });
    assert.deepEqual([answer.status, answer.body.error.reason], [403, 'read_only_key'], url);
  }
});
