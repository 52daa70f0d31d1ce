import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { type Answer, type Call, createApiClient } from './testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };
const path = '/api/v2/servers';
const send = (key: string, name: string, body: object = order, at = path) =>
  call('POST', at, { key, body, headers: { 'idempotency-key': name } });

async function ordersOf(tenantId: number): Promise<number> {
  const { rows } = await world.database.pool.query(
    'select count(*) as n from server_orders where tenant_id = $1',
    [tenantId],
  );
  return rows[0].n;
}

const told = (answer: Answer) => [answer.status, answer.body.id, answer.body.root_password];

test('a repeated create answers with the same server and its password, and takes no deploy slot', async () => {
  const customer = await world.createCustomer('Again');
  const key = await world.createKey(customer);
  const first = await send(key, 'once');
  assert.equal(first.headers.get('idempotent-replayed'), null);
  const again = await send(key, 'once', { image: 'debian-12', plan: 'small' });
  assert.deepEqual(told(again), told(first), 'the order of the members does not matter');
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.headers.get('location'), first.headers.get('location'));
  assert.equal(again.headers.get('x-api-quota-used'), '2', 'a replay is counted');
  assert.doesNotMatch(again.headers.get('ratelimit-policy') ?? '', /deploy/);
  assert.equal(await ordersOf(customer.tenant.id), 1);
  const { rows } = await world.database.pool.query(
    'select count(*) as n from idempotency_keys k where k::text like $1',
    [`%${first.body.root_password}%`],
  );
  assert.equal(rows[0].n, 0, 'no second copy of the password');
});

test('API-4.5: without the header, with another name, key, version or workspace, every create is a new order', async () => {
  const customer = await world.createCustomer('New orders');
  const [key, other] = [await world.createKey(customer), await world.createKey(customer)];
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Second workspace' });
  await world.setBalance(second, 100_000);
  const answers = [
    await send(key, 'a'),
    await send(key, 'b'),
    await send(other, 'a'),
    await send(key, 'a', order, '/api/v1/servers'),
    await send(key, 'a', order, `${path}?tenant=${second.id}`),
    await call('POST', path, { key, body: order }),
    await call('POST', path, { key, body: order }),
  ];
  assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 7);
  assert.equal(await ordersOf(customer.tenant.id), 6);
});

test('another body under the same name is a 422, and orders nothing', async () => {
  const customer = await world.createCustomer('Other body');
  const key = await world.createKey(customer);
  await send(key, 'once');
  const other = await send(key, 'once', { ...order, name: 'different' });
  assert.deepEqual([other.status, other.body.error.reason], [422, 'idempotency_key_reused']);
  assert.equal(await ordersOf(customer.tenant.id), 1);
});

test('twenty creates at once under one name make one order; the others are told so', async () => {
  const customer = await world.createCustomer('At once');
  const key = await world.createKey(customer);
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(key, 'once')));
  for (const answer of answers.filter((one) => one.status !== 201)) {
    assert.deepEqual([answer.status, answer.body.error.reason], [409, 'idempotency_in_progress']);
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
  }
  const made = answers.filter((answer) => answer.status === 201);
  assert.ok(made.length > 0);
  assert.equal(new Set(made.map((answer) => answer.body.id)).size, 1);
  assert.equal(await ordersOf(customer.tenant.id), 1);
});

test('what ordered nothing may be sent again under its name: 422, 402 without an order, 429', async () => {
  const customer = await world.createCustomer('Mended');
  const key = await world.createKey(customer);
  assert.equal((await send(key, 'once', { plan: 'huge', image: 'debian-12' })).status, 422);
  await world.setBalance(customer.tenant, 0);
  const refused = await send(key, 'once');
  assert.deepEqual([refused.status, refused.body.error.reason], [402, 'credit_required']);
  await world.setBalance(customer.tenant, 10_000);
  assert.equal((await send(key, 'once')).status, 201);
});

test('API-4.b: a charge that failed is told again with the same order and attempt, and is not made again', async () => {
  const customer = await world.createCustomer('Declined');
  await world.setBalance(customer.tenant, 0);
  await world.saveCard(customer.tenant, '4000000000000002');
  const key = await world.createKey(customer);
  const first = await send(key, 'once');
  assert.deepEqual([first.status, first.body.error.reason], [402, 'charge_declined']);
  assert.ok(first.body.error.order_id > 0 && first.body.error.payment_attempt_id > 0);
  const again = await send(key, 'once');
  for (const name of ['reason', 'order_id', 'payment_attempt_id'])
    assert.equal(again.body.error[name], first.body.error[name]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(await ordersOf(customer.tenant.id), 1);
});

test('a caller that died before its order was made frees its name after its claim; one that died after it is found', async () => {
  const customer = await world.createCustomer('Died');
  const key = await world.createKey(customer);
  const principal = keyIdOf(key);
  const claim = {
    keyId: principal,
    method: 'POST',
    path,
    idempotencyKey: 'once',
    content: { body: order, tenant: customer.tenant.id },
  };
  await world.idempotency.begin(claim);
  assert.equal((await send(key, 'once')).body.error.reason, 'idempotency_in_progress');
  await moveWorldClock(world.database, '3 minutes');
  const made = await send(key, 'once');
  assert.equal(made.status, 201);
  // The answer is lost; a repeated call finds the server.
  assert.deepEqual(told(await send(key, 'once')), told(made));
  assert.equal(await ordersOf(customer.tenant.id), 1);
  await moveWorldClock(world.database, '25 hours');
  assert.notEqual((await send(key, 'once')).body.id, made.body.id, 'after a day the name is free');
  await moveWorldClock(world.database, '0');
});

test('a caller that was overtaken makes no second order', async () => {
  const customer = await world.createCustomer('Overtaken');
  const key = await world.createKey(customer);
  const principal = keyIdOf(key);
  const content = { body: order, tenant: customer.tenant.id };
  const begun = await world.idempotency.begin({
    keyId: principal,
    method: 'POST',
    path,
    idempotencyKey: 'once',
    content,
  });
  assert.ok('claim' in begun);
  await moveWorldClock(world.database, '3 minutes');
  const made = await send(key, 'once');
  await assert.rejects(
    world.ordering.createServer(
      { kind: 'system' },
      { tenantId: customer.tenant.id, ...order },
      { onOrdered: (tx, orderId) => begun.claim.bind(tx, { kind: 'order', id: orderId }) },
    ),
    /taken it over/,
  );
  assert.equal(await ordersOf(customer.tenant.id), 1);
  assert.deepEqual(told(await send(key, 'once')), told(made));
  await moveWorldClock(world.database, '0');
});

test('a network is made once under one name, at once or later; a deleted one is a 404', async () => {
  const customer = await world.createCustomer('Networks');
  const key = await world.createKey(customer);
  const create = (name: string) =>
    call('POST', '/api/v2/networks', { key, body: { name }, headers: { 'idempotency-key': 'net-1' } });
  const answers = await Promise.all(Array.from({ length: 5 }, () => create('backend')));
  const ids = new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id));
  assert.equal(ids.size, 1);
  for (const { status, body } of answers)
    if (status !== 201) assert.deepEqual([status, body.error.reason], [409, 'idempotency_in_progress']);
  const again = await create('backend');
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  assert.ok(ids.has(again.body.id));
  assert.equal((await call('GET', '/api/v2/networks', { key })).body.pagination.total, 1);
  assert.equal((await create('other')).body.error.reason, 'idempotency_key_reused');
  await call('DELETE', `/api/v2/networks/${again.body.id}`, { key });
  assert.equal((await create('backend')).status, 404);
});

test('an action is asked for once under one name, and a bad name is a 400', async () => {
  const customer = await world.createCustomer('Actions');
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'acting');
  const at = `${path}/${serverId}/actions`;
  const first = await send(key, 'once', { action: 'reboot' }, at);
  const again = await send(key, '"once"', { action: 'reboot' }, at);
  assert.deepEqual([first.status, again.status, again.body.id], [202, 202, first.body.id]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  await world.jobs.drain();
  const later = await send(key, 'once', { action: 'reboot' }, at);
  assert.deepEqual([later.status, later.body.id, later.body.status], [200, first.body.id, 'success']);
  for (const name of ['', ' ', 'with space', 'x'.repeat(256)]) {
    const bad = await send(key, name, { action: 'reboot' }, at);
    assert.deepEqual([bad.status, bad.body.error.reason], [400, 'invalid_header'], JSON.stringify(name));
  }
});

function keyIdOf(token: string): string {
  return token.split('_')[1]!;
}
