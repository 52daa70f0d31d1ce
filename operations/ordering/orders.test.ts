import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { appendLedgerEntry } from '#operations/billing/index.ts';
import { createPasswordClearing } from '#operations/ordering/index.ts';
import type { PaymentGateway } from '#operations/payments/index.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { until } from '#service-kit/testing/until.ts';

const month = 40_000;
let world: World;
let call: ReturnType<typeof createApiClient>;
/** What the gateway was asked, and how it answers; each test sets it anew. */
let gateway: { calls: string[]; take: PaymentGateway['take'] | null; prepareFails: boolean };

before(async () => {
  world = await createWorld({
    gateway: (usual) => ({
      ...usual,
      async prepare(charge) {
        gateway.calls.push(`prepare ${charge.key} ${charge.amountQuanta}`);
        if (gateway.prepareFails) throw new Error('no answer');
        return usual.prepare(charge);
      },
      take(key, reference) {
        gateway.calls.push(`take ${key}`);
        return gateway.take ? gateway.take(key, reference) : usual.take(key, reference);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function customerWithCard(name: string, number?: string) {
  gateway = { calls: [], take: null, prepareFails: false };
  const customer = await world.createCustomer(name);
  await world.setBalance(customer.tenant, 0);
  await world.saveCard(customer.tenant, number);
  const key = await world.createKey(customer);
  const create = () => call('POST', '/api/v1/servers', { key, body: { plan: 'small', image: 'debian-12' } });
  return { ...customer, create };
}

async function state(tenant: Tenant) {
  const { rows } = await world.database.pool.query(
    `select (select count(*) from servers where tenant_id = $1) as servers,
       (select count(*) from jobs j join servers s on (j.payload ->> 'server_id')::bigint = s.id
         where s.tenant_id = $1 and j.kind = 'servers.provision') as jobs,
       (select coalesce(json_agg(state order by id), '[]') from server_orders where tenant_id = $1) as orders,
       (select coalesce(json_agg(state order by id), '[]') from charges where tenant_id = $1) as charges`,
    [tenant.id],
  );
  return { ...rows[0], balance: await world.billing.balanceOf(systemActor, tenant.id) };
}

test('API-3.2: without credit a saved card is charged exactly one month, before provisioning is queued', async () => {
  const { tenant, create } = await customerWithCard('Month');
  await world.setBalance(tenant, -1_500);
  let queuedBeforePaid = -1;
  gateway.take = null;
  const usual = gateway.calls;
  const made = await create();
  assert.equal(made.status, 201);
  assert.equal(typeof made.body.root_password, 'string');
  assert.equal(usual.length, 2);
  assert.match(usual[0]!, new RegExp(`^prepare chg_\\S+ ${month}$`));
  assert.equal(usual[0]!.split(' ')[1], usual[1]!.split(' ')[1], 'one id for both calls');
  assert.deepEqual(await state(tenant), {
    servers: 1,
    jobs: 1,
    orders: ['paid'],
    charges: ['succeeded'],
    balance: month - 1_500,
  });
  // The order was there, the server was not, while the card was charged.
  const second = await customerWithCard('Month before');
  gateway.take = async (_key, reference) => {
    const seen = await state(second.tenant);
    queuedBeforePaid = seen.servers + seen.jobs;
    assert.deepEqual([seen.orders, seen.charges], [['created'], ['prepared']]);
    return world.gateway.read(reference).then(() => ({ kind: 'succeeded' as const }));
  };
  assert.equal((await second.create()).status, 201);
  assert.equal(queuedBeforePaid, 0);
});

test('API-3.1: with credit $0.00 is due, the card is left alone, and the server is queued at once', async () => {
  const { tenant, create } = await customerWithCard('Credit');
  await world.setBalance(tenant, 1);
  const made = await create();
  assert.equal(made.status, 201);
  assert.deepEqual(gateway.calls, []);
  assert.deepEqual(await state(tenant), { servers: 1, jobs: 1, orders: ['paid'], charges: [], balance: 1 });
});

test('API-3.1: an order waits for what spends the last credit, and is not made at $0.00 without credit', async () => {
  const { tenant, create } = await customerWithCard('Spent', '4000000000000002');
  await world.setBalance(tenant, 1);
  assert.equal((await create()).status, 201, 'with credit');
  const { db, pool } = world.database;
  const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  let answer: ReturnType<typeof create> | null = null;
  let hasAnswered = false;
  await db.transaction().execute(async (tx) => {
    await appendLedgerEntry(tx, {
      tenantId: tenant.id,
      amountQuanta: -1,
      description: 'spent',
      metadata: { source: 'server_hours', reference: 'last credit' },
    });
    answer = create().finally(() => {
      hasAnswered = true;
    });
    await until(
      'the order waits',
      60_000,
      async () => hasAnswered || (await pool.query(waits)).rowCount !== 0,
    );
  });
  assert.equal((await answer!).status, 402);
  assert.equal((await state(tenant)).servers, 1);
});

test('API-3.3: a declined card is a 402 with the order and the attempt, and nothing is queued', async () => {
  const { tenant, create } = await customerWithCard('Declined', '4000000000000002');
  const refused = await create();
  assert.equal(refused.status, 402);
  const { code, reason, order_id: orderId, payment_attempt_id: attemptId } = refused.body.error;
  assert.deepEqual([code, reason], ['payment_required', 'charge_declined']);
  const { rows } = await world.database.pool.query('select order_id, id from charges where tenant_id = $1', [
    tenant.id,
  ]);
  assert.deepEqual([orderId, attemptId], [rows[0].order_id, rows[0].id]);
  assert.deepEqual(await state(tenant), {
    servers: 0,
    jobs: 0,
    orders: ['unpaid'],
    charges: ['declined'],
    balance: 0,
  });
});

test('API-3.3: an unconfirmed charge is a 402, and its late success is given back without queueing anything', async () => {
  const { tenant, create } = await customerWithCard('Late');
  gateway.take = async () => {
    throw new Error('timeout');
  };
  const refused = await create();
  assert.deepEqual([refused.status, refused.body.error.reason], [402, 'charge_unconfirmed']);
  assert.ok(refused.body.error.order_id > 0 && refused.body.error.payment_attempt_id > 0);
  // The gateway took the money after all.
  await world.database.pool.query(
    `update test_gateway_charges set state = 'succeeded'
     where charge_key = (select charge_key from charges where tenant_id = $1)`,
    [tenant.id],
  );
  await moveWorldClock(world.database, '10 minutes');
  assert.equal(await world.payments.reconcile(), 1);
  assert.equal(await world.payments.reconcile(), 0);
  await loopOf(world.ordering, 'operations.orders').runOnce();
  assert.deepEqual(await state(tenant), {
    servers: 0,
    jobs: 0,
    orders: ['unpaid'],
    charges: ['refunded'],
    balance: 0,
  });
  await moveWorldClock(world.database, '0');
});

test('API-3.3: a gateway that does not answer at all has taken nothing, and nothing waits', async () => {
  const { tenant, create } = await customerWithCard('Silent');
  gateway.prepareFails = true;
  const refused = await create();
  assert.deepEqual([refused.status, refused.body.error.reason], [402, 'charge_unconfirmed']);
  assert.deepEqual(await state(tenant), {
    servers: 0,
    jobs: 0,
    orders: ['unpaid'],
    charges: ['voided'],
    balance: 0,
  });
});

test('API-4.5: each create is a new order, also within 20 seconds and word for word', async () => {
  const { tenant, create } = await customerWithCard('Twice');
  const first = await create();
  const second = await create();
  assert.deepEqual([first.status, second.status], [201, 201]);
  assert.notEqual(first.body.order_id, second.body.order_id);
  assert.deepEqual((await state(tenant)).charges, ['succeeded'], 'the first left credit for the second');
});

test('a location without room is found out before the card is charged', async () => {
  const { tenant, create } = await customerWithCard('Full');
  const { rows } = await world.database.pool.query(
    'update address_pools set last_address = first_address returning id',
  );
  assert.ok(rows.length > 0);
  const refused = await create();
  assert.deepEqual([refused.status, refused.body.error.reason], [503, 'capacity_unavailable']);
  assert.deepEqual(gateway.calls, []);
  assert.deepEqual(await state(tenant), { servers: 0, jobs: 0, orders: [], charges: [], balance: 0 });
});

test('API-5.5: a removed or expired card arms nothing', async () => {
  const { tenant, create } = await customerWithCard('Disarmed');
  await world.database.pool.query(
    'update saved_cards set expires_year = 2001, expires_month = 1 where tenant_id = $1',
    [tenant.id],
  );
  assert.equal((await create()).body.error.reason, 'credit_required');
  await world.database.pool.query('update saved_cards set expires_year = 2199 where tenant_id = $1', [
    tenant.id,
  ]);
  const [card] = await world.payments.listCards(systemActor, tenant.id);
  await world.payments.removeCard(systemActor, tenant.id, card!.id);
  assert.equal((await create()).body.error.reason, 'credit_required');
});

test('API-2.3.b: a root password is gone a day after its server was ready or its order was closed, and is kept for one that waits or failed', async () => {
  await using own = await createWorld();
  const { tenant } = await own.createCustomer('Cleared');
  const order = async (name: string) => {
    const made = await own.ordering.createServer(systemActor, {
      tenantId: tenant.id,
      plan: 'small',
      image: 'debian-12',
      name,
    });
    return made.serverId;
  };
  const { pool } = own.database;
  const kept = async () => {
    const { rows } = await pool.query<{ name: string }>(
      `select coalesce(s.name, o.state || coalesce(' and ' || o.closed_reason, '')) as name
       from server_orders o left join servers s on s.order_id = o.id
       where o.tenant_id = $1 and o.root_password is not null order by 1`,
      [tenant.id],
    );
    return rows.map((row) => row.name);
  };
  await order('ready');
  const gone = await order('gone');
  await own.jobs.drain();
  const failed = await order('failed');
  await order('waiting');
  await pool.query(`update servers set provisioning_state = 'failed' where id = $1`, [failed]);
  await pool.query(
    `update servers set provisioning_state = 'deleted', deleted_at = svc_now() where id = $1`,
    [gone],
  );
  // Orders without a server.
  await pool.query(
    `insert into server_orders (tenant_id, plan_id, state, billing_cycle, due_quanta, root_password, closed_reason)
     select $1, plan_id, state, 'hourly', 0, 'x', reason from servers,
       (values ('created', null), ('created', 'closed'), ('unpaid', null)) as of (state, reason) where id = $2`,
    [tenant.id, gone],
  );
  const loop = createPasswordClearing({
    db: () => own.database.db,
    clock: systemClock,
    reporter: silentReporter,
  });
  await moveWorldClock(own.database, '23 hours 59 minutes');
  await loop.runOnce();
  assert.deepEqual(await kept(), [
    'created',
    'created and closed',
    'failed',
    'gone',
    'ready',
    'unpaid',
    'waiting',
  ]);
  await moveWorldClock(own.database, '24 hours 1 minute');
  await loop.runOnce();
  assert.deepEqual(await kept(), ['created', 'failed', 'waiting']);
  await moveWorldClock(own.database, '0');
});
