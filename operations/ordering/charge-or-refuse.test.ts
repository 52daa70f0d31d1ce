import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { PaymentGateway } from '#operations/payments/index.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
let taken: string[] = [];
/** Runs while the gateway takes the money. */
let whileTaking: () => Promise<void> = async () => {};

before(async () => {
  world = await createWorld({
    gateway: (usual): PaymentGateway => ({
      ...usual,
      async take(key, reference) {
        taken.push(key);
        await whileTaking();
        return usual.take(key, reference);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function customerWithCard(name: string, number?: string) {
  taken = [];
  whileTaking = async () => {};
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const made = await call('POST', '/api/v2/networks', { key, body: { name: 'back', cidr: '10.7.0.0/29' } });
  assert.equal(made.status, 201);
  await world.setBalance(customer.tenant, 0);
  await world.saveCard(customer.tenant, number);
  const networkId: number = made.body.id;
  const create = (more: object = {}, headers: Record<string, string> = {}) =>
    call('POST', '/api/v2/servers', {
      key,
      headers,
      body: { plan: 'small', image: 'debian-12', network_id: networkId, ...more },
    });
  return { ...customer, key, networkId, create };
}

async function state(tenant: Tenant) {
  const { rows } = await world.database.pool.query(
    `select (select count(*) from servers where tenant_id = $1) as servers,
       (select coalesce(json_agg(state order by id), '[]') from charges where tenant_id = $1) as charges,
       (select coalesce(json_agg(state || coalesce(' ' || closed_reason, '') order by id), '[]')
         from server_orders where tenant_id = $1) as orders`,
    [tenant.id],
  );
  return { ...rows[0], balance: await world.billing.balanceOf(systemActor, tenant.id) };
}

/** All of them are sent before the gateway takes anything. */
async function atOnce(n: number, create: () => ReturnType<typeof call>) {
  const { promise, resolve } = Promise.withResolvers<void>();
  whileTaking = () => promise;
  const calls = Array.from({ length: n }, create);
  const first = await Promise.race([Promise.all(calls).then(() => null), waitForRefusals(calls, n - 1)]);
  assert.equal(first, 'refused', 'the others are refused while the first one is still being charged');
  resolve();
  return Promise.all(calls);
}

async function waitForRefusals(calls: readonly ReturnType<typeof call>[], n: number): Promise<'refused'> {
  let ended = 0;
  await new Promise<void>((resolve) => {
    for (const one of calls)
      void one.then(() => {
        ended += 1;
        if (ended === n) resolve();
      });
  });
  return 'refused';
}

test('of four creates at once with one private address one is charged and made, three are refused uncharged', async () => {
  const { tenant, create } = await customerWithCard('One address');
  const answers = await atOnce(4, () => create({ network_ip: '10.7.0.5' }));
  const told = answers.map(({ status, body }) => (status === 201 ? '201' : body.error.reason)).sort();
  assert.deepEqual(told, ['201', 'ip_in_use', 'ip_in_use', 'ip_in_use']);
  assert.equal(taken.length, 1);
  assert.deepEqual(await state(tenant), {
    servers: 1,
    charges: ['succeeded'],
    orders: ['paid'],
    balance: 40_000,
  });
});

test('the last free address of a network is sold once', async () => {
  const { tenant, create } = await customerWithCard('Last of network');
  // A /29 has five addresses for servers.
  await world.setBalance(tenant, 1);
  for (let made = 0; made < 4; made += 1) assert.equal((await create()).status, 201);
  await world.setBalance(tenant, 0);
  const answers = await atOnce(3, () => create());
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422, 422]);
  assert.equal(taken.length, 1);
});

test('the last public address and the last room of a location are sold once', async () => {
  const { pool } = world.database;
  for (const contest of ['address', 'room'] as const) {
    const { create } = await customerWithCard(`Last ${contest}`);
    if (contest === 'address')
      await pool.query(`update address_pools p set last_address = first_address
        + (select count(*) from allocations a where a.pool_id = p.id)::int where family(first_address) = 4`);
    else
      await pool.query(`update nodes n set memory_mb = 2048 + (select sum(memory_mb) from node_reservations r
        where r.node_id = n.id and r.released_at is null)`);
    const { rows } = await pool.query("select memory_mb from plans where slug = 'small'");
    if (contest === 'room')
      await pool.query('update nodes set memory_mb = memory_mb - 2048 + $1', [rows[0].memory_mb]);
    const answers = await atOnce(3, () => create());
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 503, 503], contest);
    assert.equal(taken.length, 1, contest);
    await pool.query(
      "update address_pools set last_address = '203.0.113.250' where family(first_address) = 4",
    );
    await pool.query('update nodes set memory_mb = 8388608');
  }
});

test('a network that an order is being paid for is not deleted, and a declined order gives its address back', async () => {
  const { create, key, networkId } = await customerWithCard('Declined', '4000000000000002');
  const { promise, resolve } = Promise.withResolvers<void>();
  const { promise: isTaking, resolve: begin } = Promise.withResolvers<void>();
  whileTaking = () => {
    begin();
    return promise;
  };
  const creating = create({ network_ip: '10.7.0.5' });
  await isTaking;
  const refused = await call('DELETE', `/api/v2/networks/${networkId}`, { key });
  assert.deepEqual([refused.status, refused.body.error.reason], [409, 'network_in_use']);
  assert.equal(refused.body.error.retryable, true);
  resolve();
  assert.equal((await creating).body.error.reason, 'charge_declined');
  whileTaking = async () => {};
  assert.equal((await create({ network_ip: '10.7.0.5' })).body.error.reason, 'charge_declined');
  assert.equal((await call('DELETE', `/api/v2/networks/${networkId}`, { key })).status, 204);
});

test('a plan that is withdrawn while the card is charged is still delivered, at the price of the order', async () => {
  const { create } = await customerWithCard('Withdrawn');
  const { pool } = world.database;
  whileTaking = async () => {
    await pool.query(
      "update plans set is_offered = false, hourly_quanta = 999, monthly_cap_quanta = 9999 where slug = 'small'",
    );
  };
  const { rows } = await pool.query(
    "select hourly_quanta, monthly_cap_quanta from plans where slug = 'small'",
  );
  try {
    const made = await create();
    assert.equal(made.status, 201);
    assert.equal(made.body.billing.price_hourly, formatQuanta(rows[0].hourly_quanta));
  } finally {
    await pool.query(
      "update plans set is_offered = true, hourly_quanta = $1, monthly_cap_quanta = $2 where slug = 'small'",
      [rows[0].hourly_quanta, rows[0].monthly_cap_quanta],
    );
  }
});

test('API-3.2: a month with parts of a cent is charged, and credited, rounded up to a cent', async () => {
  const { create, tenant } = await customerWithCard('Parts of a cent');
  const setMonth = (quanta: number) =>
    world.database.pool.query("update plans set monthly_cap_quanta = $1 where slug = 'small'", [quanta]);
  await setMonth(40_050);
  try {
    assert.equal((await create()).status, 201);
  } finally {
    await setMonth(40_000);
  }
  const [charge] = await world.payments.listCharges(systemActor, tenant.id, 1);
  assert.equal(charge!.amountQuanta, 40_100);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 40_100);
});

/** What an older version of the program, which holds nothing, can do to an order that is being paid. */
async function stealAddress(networkId: number): Promise<void> {
  const mac = `02:00:00:00:00:${(networkId % 256).toString(16).padStart(2, '0')}`;
  await world.database.pool.query(
    `insert into network_attachments (network_id, server_id, ip, mac_address)
     select $1, max(id), '10.7.0.5', $2 from servers`,
    [networkId, mac],
  );
}

test('an order that is refused after its card was charged gives the charge back at once and names the order', async () => {
  const { tenant, create, networkId } = await customerWithCard('Refused late');
  await world.database.pool.query(
    `update ledger_entries set metadata = metadata || '{"source": "test"}' where tenant_id = $1`,
    [tenant.id],
  );
  whileTaking = () => stealAddress(networkId);
  const headers = { 'idempotency-key': 'refused-late' };
  const refused = await create({ network_ip: '10.7.0.5' }, headers);
  const { rows } = await world.database.pool.query('select order_id, id from charges where tenant_id = $1', [
    tenant.id,
  ]);
  const { code, reason, order_id: orderId, payment_attempt_id: attemptId, retryable } = refused.body.error;
  assert.deepEqual([refused.status, code, reason, retryable], [409, 'conflict', 'order_refused', false]);
  assert.deepEqual([orderId, attemptId], [rows[0].order_id, rows[0].id]);
  assert.equal(refused.body.error.details.cause, 'ip_in_use');
  assert.deepEqual(await state(tenant), {
    servers: 0,
    charges: ['refunded'],
    orders: ['paid networks.ip_in_use'],
    balance: 0,
  });
  // No money stays, so nothing was ever paid in; what others paid in is theirs.
  const access = (await world.billing.accessOf([tenant.id])).get(tenant.id);
  assert.deepEqual([access?.balanceQuanta, access?.hasDeposit], [0, false]);
  const again = await create({ network_ip: '10.7.0.5' }, headers);
  assert.deepEqual(
    [again.status, again.body.error.reason, again.body.error.order_id],
    [409, 'order_refused', orderId],
  );
  assert.equal(taken.length, 1);
});

test('a refund that the gateway does not answer is finished by reconciliation', async () => {
  const { tenant, create, networkId } = await customerWithCard('Refund lost');
  whileTaking = () => stealAddress(networkId);
  const usual = world.gateway.undo;
  world.gateway.undo = () => Promise.reject(new Error('no answer'));
  const refused = await create({ network_ip: '10.7.0.5' });
  world.gateway.undo = usual;
  assert.equal(refused.body.error.reason, 'order_refused');
  assert.deepEqual((await state(tenant)).charges, ['unconfirmed']);
  assert.equal((await state(tenant)).balance, 0);
  await world.database.pool.query(
    "update charges set next_attempt_at = svc_now() where state = 'unconfirmed'",
  );
  assert.equal(await world.payments.reconcile(), 1);
  assert.deepEqual((await state(tenant)).charges, ['refunded']);
});

test('what an order of a dead process held is free again once its charge was given up', async () => {
  const { tenant, create, networkId } = await customerWithCard('Died');
  let isDead = true;
  whileTaking = () => (isDead ? new Promise(() => {}) : Promise.resolve());
  void create({ network_ip: '10.7.0.5' }).catch(() => {});
  const held = async () => {
    const { rows } = await world.database.pool.query(
      'select count(*)::int as n from network_holds where network_id = $1',
      [networkId],
    );
    return rows[0].n as number;
  };
  while ((await held()) === 0 || taken.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await world.database.pool.query(
    "update charges set created_at = created_at - interval '10 minutes' where tenant_id = $1",
    [tenant.id],
  );
  assert.equal(await world.payments.reconcile(), 1);
  const loop = loopOf(world.ordering, 'operations.orders');
  await loop.runOnce();
  await loop.stop();
  assert.equal(await held(), 0);
  assert.deepEqual((await state(tenant)).orders, ['unpaid not_paid']);
  isDead = false;
  assert.equal((await create({ network_ip: '10.7.0.5' })).status, 201);
});
