import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { createRollupLoop } from '#operations/bandwidth/index.ts';
import { createThresholdLoop } from '#operations/bandwidth/tell-thresholds.ts';
import { chargeBandwidth } from '#operations/billing-maintenance/charge-bandwidth.ts';
import { maintainBilling } from '#operations/billing-maintenance/index.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { moveWorldClock, worldStartMs } from '#operations/testing/world-time.ts';
import type { LeasedLoop } from '#service-kit/leases/index.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
const included = 5_000;
before(async () => {
  world = await createWorld({
    includedPerMonth: included,
    bandwidthSource: 'telemetry',
    // 5.00 for a TB beyond 3 GB.
    bandwidthOverageQuanta: 50_000,
    bandwidthBaseGb: 3,
    bandwidthTenureYearGb: 0,
    bandwidthPerServerGb: 0,
    bandwidthLimitMbit: 10,
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

/** Sets how many requests this month has counted for an account. */
async function setCount(tenant: Tenant, count: number): Promise<void> {
  await world.database.pool.query(
    `insert into usage_months (tenant_id, month, count)
     values ($1, date_trunc('month', svc_now() at time zone 'utc')::date, $2)
     on conflict (tenant_id, month) do update set count = excluded.count`,
    [tenant.id, count],
  );
}

async function overages(tenant: Tenant): Promise<number[]> {
  const entries = await world.billing.listEntries(systemActor, tenant.id, 100);
  return entries
    .filter((entry) => entry.metadata.source === 'api_overage')
    .map((entry) => -entry.amountQuanta);
}

const tick = () => maintainBilling({ ...world, db: () => world.database.db });

test('API-1.3, API-8.6: only requests past 5,000 are charged, rounded down to the quantum, and once', async () => {
  for (const [count, quanta] of [
    [5_000, []],
    [5_001, []],
    [5_009, []],
    [5_010, [1]],
    [6_005, [100]],
  ] as const) {
    const { tenant } = await world.createCustomer(`Over ${count}`);
    await setCount(tenant, count);
    await Promise.all([tick(), tick(), tick()]);
    await tick();
    assert.deepEqual(await overages(tenant), quanta, `${count} requests`);
  }
});

test('API-2.7: overage is a ledger entry whose metadata source is api_overage, and the mark moves with it', async () => {
  const { tenant } = await world.createCustomer('Entry');
  await setCount(tenant, included + 1_234);
  await tick();
  const [entry] = await world.billing.listEntries(systemActor, tenant.id, 1);
  assert.equal(entry!.metadata.source, 'api_overage');
  assert.equal(entry!.amountQuanta, -123);
  assert.equal(entry!.metadata.requests, 1_230, 'the requests that 123 quanta pay for');
  const mark = async () =>
    (
      await world.database.pool.query(
        'select overage_charged_count as mark, included_count as kept from usage_months where tenant_id = $1',
        [tenant.id],
      )
    ).rows[0];
  assert.deepEqual(await mark(), { mark: 1_230, kept: null });
  await setCount(tenant, included + 1_240);
  await tick();
  assert.deepEqual(await overages(tenant), [1, 123], 'the remainder was carried');
  assert.deepEqual(await mark(), { mark: 1_240, kept: null });
});

test('API-8.6: requests of a month’s last day are charged in the next month, by what was free then', async () => {
  const { tenant } = await world.createCustomer('Last day');
  await setCount(tenant, included + 50);
  await moveWorldClock(world.database, '32 days');
  await tick();
  assert.deepEqual(await overages(tenant), [5]);
  await moveWorldClock(world.database, '0');
});

test('API-3.5, API-3.6, API-8.6: going over refuses nothing; maintenance alone suspends a debt, and takes it back when it is paid', async () => {
  const customer = await world.createCustomer('Debt');
  const key = await world.createKey(customer);
  const { tenant } = customer;
  await world.setBalance(tenant, 1);
  await setCount(tenant, included + 1_000_000);
  const status = async () => (await call('GET', '/api/v2/servers', { key })).status;
  assert.equal(await status(), 200, 'far beyond the free requests');
  await world.setBalance(tenant, -500);
  assert.equal(await status(), 200, 'a debt alone blocks nothing');
  await tick();
  const locked = await call('GET', '/api/v2/servers', { key });
  assert.deepEqual([locked.status, locked.body.error.reason], [403, 'account_suspended'], 'API-3.5');
  assert.equal(locked.headers.get('x-api-quota-used'), null, 'API-3.5: not counted');
  await world.setBalance(tenant, 0);
  await tick();
  assert.equal(await status(), 200, 'no debt any more');

  await world.accounts.setTenantStatus(systemActor, tenant.id, 'SUSPENDED');
  await tick();
  assert.equal(await status(), 403, 'what an operator suspended stays so');
  await world.accounts.setTenantStatus(systemActor, tenant.id, 'ACTIVE');
});

test('a payment and a suspension at the same moment wait for each other, without a deadlock', async () => {
  const { tenant } = await world.createCustomer('Crossing');
  await world.setBalance(tenant, -500);
  const { db, pool } = world.database;
  let suspending: Promise<unknown> = Promise.resolve();
  await db.transaction().execute(async (tx) => {
    // The first half of a ledger entry: it references the tenant.
    await sql`insert into ledger_entries (tenant_id, amount_quanta, description, metadata)
      values (${tenant.id}, 1, 'half', '{"source": "deposit"}')`.execute(tx);
    suspending = tick();
    const isSuspended = async () =>
      (await pool.query("select 1 from tenants where id = $1 and status = 'SUSPENDED'", [tenant.id]))
        .rowCount;
    const isWaiting = async () =>
      (
        await pool.query(
          "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        )
      ).rowCount;
    while (!(await isSuspended()) && !(await isWaiting())) await new Promise((wake) => setTimeout(wake, 5));
    await sql`select 1 from credit_balances where tenant_id = ${tenant.id} for update`.execute(tx);
  });
  await suspending;
});

test('API-1.3: the ledger itself refuses a charge for the same account, month and mark', async () => {
  const { tenant } = await world.createCustomer('Double');
  const insert = () =>
    world.database.pool.query(
      `insert into ledger_entries (tenant_id, amount_quanta, description, metadata)
       values ($1, -1, 'direct', '{"source": "api_overage", "reference": "2000-01:10"}')`,
      [tenant.id],
    );
  await insert();
  await assert.rejects(insert(), { constraint: 'ledger_entries_reference' });
});

test('an account whose balance is locked is passed over by hours, overage and suspension; the others go on', async () => {
  const [stuck, other] = [await world.createCustomer('Stuck'), await world.createCustomer('Not stuck')];
  const { db, pool } = world.database;
  const tenants = [stuck.tenant, other.tenant];
  for (const tenant of tenants) {
    await world.deploy(tenant, 'billed');
    await pool.query(
      "insert into usage_months (tenant_id, month, count) values ($1, date_trunc('month', svc_now() at time zone 'utc'), 6000)",
      [tenant.id],
    );
    await world.setBalance(tenant, -1);
  }
  const charged = async () =>
    Promise.all(
      tenants.map(async (tenant) => {
        const entries = await world.billing.listEntries(systemActor, tenant.id, 50);
        const sources = entries.map((entry) => entry.metadata.source);
        const { status } = (await world.accounts.findTenant(tenant.id))!;
        return [sources.includes('server_hours'), sources.includes('api_overage'), status];
      }),
    );
  await db.transaction().execute(async (tx) => {
    await sql`select 1 from credit_balances where tenant_id = ${stuck.tenant.id} for update`.execute(tx);
    await tick();
    assert.deepEqual(await charged(), [
      [false, false, 'ACTIVE'],
      [true, true, 'SUSPENDED'],
    ]);
  });
  await tick();
  assert.deepEqual(await charged(), [
    [true, true, 'SUSPENDED'],
    [true, true, 'SUSPENDED'],
  ]);
});

test('API-8.6: traffic beyond the pool is charged once, after its month and three days, by what was delivered', async () => {
  const customer = await world.createCustomer('Traffic');
  const { tenant } = customer;
  const key = await world.createKey(customer);
  const { serverId, allocations } = await world.deploy(tenant, 'traffic');
  const token = await world.createToken(['protect_telemetry_ingest']);
  const { pool } = world.database;
  const gb = 1_000_000_000;
  const rate = (bytes: number) => (bytes * 8) / 60;
  const loopDeps = { ...world, db: () => world.database.db, source: 'telemetry' } as const;
  const threshold = createThresholdLoop(loopDeps);
  // The first round of a loop looks at all days.
  const rollUp = async () => {
    const loop = createRollupLoop(loopDeps);
    assert.equal(await loop.runOnce(), true);
    await loop.stop();
  };
  const minuteAt = (day: number, minute: number) => Date.UTC(2027, 6, day, 12, minute);
  /** Minutes of July, as a monitor delivers them, and what follows from them. */
  const deliver = async (...minutes: Parameters<typeof deliverMinutes>[3][number][]) => {
    await deliverMinutes(world, token, allocations[0]!, minutes);
    await rollUp();
  };
  const goTo = async (month: number, day: number) => {
    const days = Math.round((Date.UTC(2027, month, day, 12) - worldStartMs) / 86_400_000);
    await moveWorldClock(world.database, `${days} days`);
    const part = { db: () => world.database.db, bandwidth: world.bandwidth };
    // The part of a tick, because a whole one charges each hour of all servers here.
    await Promise.all([chargeBandwidth(part), chargeBandwidth(part), chargeBandwidth(part)]);
  };
  const charged = async () =>
    (await world.billing.listEntries(systemActor, tenant.id, { source: 'bandwidth_overage', limit: 9 })).map(
      ({ amountQuanta, metadata }) => [metadata.period, -amountQuanta, metadata.bytes],
    );
  const told = async () =>
    (
      await pool.query("select data ->> 'percent' as percent from events where type = 'bandwidth.threshold'")
    ).rows.map(({ percent }) => Number(percent));
  const mailed = async () => (await world.mailsTo(customer.email)).map(({ subject }) => subject);
  const account = async () => (await call('GET', '/api/v2/account', { key })).body.bandwidth;

  await tick();
  assert.equal((await account()).overage.per_tb, null, 'a price holds from the next month on');
  // Counters of the hypervisor have spoofed traffic, which the guard dropped, as well.
  await pool.query(
    `insert into bandwidth_days (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
     values ($1, '2027-07-05', 'hypervisor', $2, 0, 900e9, svc_now())`,
    [serverId, tenant.id],
  );
  await goTo(6, 20);
  await deliver(
    [minuteAt(6, 1), { in: 8 * gb, out: 1.4 * gb, ddos_bps: rate(7 * gb), ddos_pps: 1_000_000 }],
    [minuteAt(6, 2), { in: 0, out: 1 * gb, own_scan: { inbound_bps: 0, outbound_bps: rate(0.4 * gb) } }],
  );
  await threshold.runOnce();
  assert.deepEqual(await told(), [50], 'two of three GB');
  assert.deepEqual(await mailed(), [], 'a process that dies after the event leaves the mail in the queue');
  await world.jobs.drain();
  assert.deepEqual(await mailed(), ['50 % of the bandwidth pool of Traffic is used']);
  await deliver(
    [minuteAt(6, 3), { in: 0, out: 6 * gb, ddos_bps: rate(2 * gb), ddos_pps: 1_000_000 }],
    [minuteAt(7, 1), { in: 0, out: 6 * gb, ddos_bps: rate(6 * gb), ddos_pps: 1_000_000 }],
  );
  const attack = (direction: 'inbound' | 'outbound', day: number, minute: number) => {
    const [start, end] = [minuteAt(day, minute) + 1_000, minuteAt(day, minute) + 50_000];
    const [started_at, last_observed_at] = [new Date(start).toISOString(), new Date(end).toISOString()];
    const state = { state: 'recovered', recovered_at: last_observed_at, current: null } as const;
    return incidentOf(
      allocations[0]!.address,
      { direction, started_at, detected_at: started_at, last_observed_at, ...state },
      end,
    );
  };
  // Of the second attack from the server there is no incident: its bytes are left out only with one.
  const { rows } = await pool.query('select id from admin_projects order by id desc limit 1');
  const { outcomes } = await world.protectIncidents.receive(
    { projectId: Number(rows[0].id), clusterIds: null },
    {
      ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId] },
      incidents: [attack('inbound', 6, 1), attack('outbound', 6, 3)],
    },
  );
  assert.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ['applied', 'applied'],
  );
  await rollUp();
  for (let round = 0; round < 2; round += 1) {
    await threshold.runOnce();
    await world.jobs.drain();
  }
  assert.deepEqual(await told(), [50, 80, 100]);
  assert.deepEqual(await mailed(), [
    '100 % of the bandwidth pool of Traffic is used',
    '50 % of the bandwidth pool of Traffic is used',
  ]);
  const { used_bytes, overage, servers } = await account();
  assert.deepEqual(
    [used_bytes, servers[0].attack_inbound_bytes, servers[0].attack_outbound_bytes],
    [12 * gb, 7 * gb, 2 * gb],
  );
  assert.deepEqual(
    [overage.per_tb, overage.bytes, overage.amount, overage.charged_at],
    ['5.00', 9 * gb, '0.045', '2027-08-04T00:00:00.000Z'],
  );
  const page = async () => {
    const cookie = await world.signIn(customer.email);
    return (
      await fetch(`${world.url}/client/billing/?source=bandwidth_overage`, { headers: { cookie } })
    ).text();
  };
  const [, shown] =
    /Traffic beyond the pool[\s\S]*?(\d[^<]* used; more costs [^<]*)/.exec(await page()) ?? [];
  assert.equal(shown, '12.0 GB of 3.00 GB used; more costs $5.00 per TB, charged on 2027-08-04');
  await goTo(7, 2);
  await deliver([minuteAt(31, 1), { in: 0, out: 1 * gb }]);
  assert.deepEqual(await charged(), [], 'what was delayed has its time to arrive');
  await goTo(7, 5);
  assert.deepEqual(await charged(), [['2027-07', 500, 10 * gb]]);
  assert.deepEqual(
    await world.bandwidth.listDueMonths(),
    [],
    'a month that is settled is not looked at again',
  );
  assert.match(await page(), /Traffic beyond the pool, 2027-07/);
  await deliver([minuteAt(31, 2), { in: 0, out: 5 * gb }]);
  await goTo(6, 20);
  await goTo(8, 6);
  assert.deepEqual(await charged(), [['2027-07', 500, 10 * gb]], 'once');
  await moveWorldClock(world.database, '0');
});

test('API-8.6: the servers of an account that chose the limit are limited once the pool is used up, and what they use then is not charged', async () => {
  const customer = await world.createCustomer('Limited');
  const { tenant } = customer;
  const key = await world.createKey(customer);
  const { pool, db } = world.database;
  const gb = 1_000_000_000;
  const goTo = async (month: number, day: number) => {
    const days = Math.round((Date.UTC(2028, month, day, 12) - worldStartMs) / 86_400_000);
    await moveWorldClock(world.database, `${days} days`);
    await chargeBandwidth({ db: () => db, bandwidth: world.bandwidth });
  };
  await goTo(1, 1);
  await goTo(2, 10);
  const servers = [(await world.deploy(tenant, 'limited')).serverId];
  const use = (bytes: number) =>
    pool.query(
      `insert into bandwidth_days (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
       values ($1, '2028-03-09', 'telemetry', $2, 0, $3, svc_now())
       on conflict (server_id, day, source) do update set outbound_bytes = excluded.outbound_bytes`,
      [servers[0], tenant.id, bytes],
    );
  const loop = world.bandwidth.work.parts.find(({ name }) => /bandwidth_limits/.test(name)) as LeasedLoop;
  /** One round of the loop and what follows from it; the speeds of the guests. */
  const speeds = async () => {
    assert.equal(await loop.runOnce(), true);
    await world.jobs.drain();
    const { rows } = await pool.query(
      'select speed_mbit from simulated_guests where name = any($1) order by name',
      [servers.map((id) => `vm-${id}`)],
    );
    return rows.map((row) => row.speed_mbit);
  };
  const choose = async (when_used_up: string, as = key) =>
    call('PATCH', '/api/v2/account', { key: as, body: { when_used_up } });
  const overage = async () => (await call('GET', '/api/v2/account', { key })).body.bandwidth.overage;
  const events = async () =>
    (
      await pool.query("select 1 from events where type = 'bandwidth.limited' and tenant_id = $1", [
        tenant.id,
      ])
    ).rowCount;

  assert.equal((await choose('limit', await world.createKey(customer, 'read'))).status, 403);
  assert.equal((await choose('stop')).status, 422);
  const chosen = (await choose('limit')).body.bandwidth.overage;
  assert.deepEqual([chosen.when_used_up, chosen.limit_mbit, chosen.limited_since], ['limit', 10, null]);
  await use(2.9 * gb);
  assert.deepEqual([await speeds(), await events()], [[null], 0]);
  const givePort = (mbit: number | null) => pool.query('update plans set port_mbit = $1', [mbit]);
  await givePort(500);
  assert.deepEqual(await speeds(), [500], 'the speed of its plan');
  await use(4 * gb);
  assert.deepEqual([await speeds(), await events()], [[10], 1]);
  assert.match(
    (await world.mailsTo(customer.email))[0]!.subject,
    /^The servers of Limited are limited to 10 Mbit/,
  );
  servers.push((await world.deploy(tenant, 'newer')).serverId);
  await use(2 * gb);
  assert.deepEqual(
    [await speeds(), await events()],
    [[10, 10], 1],
    'new ones too, and a limit that began stays',
  );
  await use(4 * gb);
  assert.deepEqual([(await overage()).bytes, (await overage()).amount], [gb, '0.00']);

  const cookie = await world.signIn(customer.email);
  const page = await (await fetch(`${world.url}/client/billing/`, { headers: { cookie } })).text();
  assert.match(page, /each server has been limited to 10 Mbit\/s since/);
  assert.equal((await choose('charge')).body.bandwidth.overage.limited_since, null);
  assert.deepEqual(await speeds(), [500, 500], 'a change of the choice ends it');
  await use(6 * gb);
  assert.equal((await overage()).amount, '0.01', 'of three GB beyond the pool two are charged');
  await choose('limit');
  assert.deepEqual(await speeds(), [10, 10]);
  await givePort(5);
  assert.deepEqual(await speeds(), [5, 5], 'the lower of both');
  await givePort(null);
  await use(9 * gb);
  await goTo(3, 5);
  assert.deepEqual(await speeds(), [null, null], 'the month has ended');
  const entries = await world.billing.listEntries(systemActor, tenant.id, {
    source: 'bandwidth_overage',
    limit: 9,
  });
  assert.deepEqual(
    entries.map(({ amountQuanta, metadata }) => [metadata.period, -amountQuanta, metadata.bytes]),
    [['2028-03', 100, 2 * gb]],
  );
  assert.equal(await events(), 2);
  const { rows } = await pool.query(
    "select operation from audit_entries where tenant_id = $1 and operation like 'bandwidth.%' order by id",
    [tenant.id],
  );
  assert.deepEqual(
    rows.map(({ operation }) => operation.replace('bandwidth.', '')),
    ['choose_when_used_up', 'limit', 'choose_when_used_up', 'choose_when_used_up', 'limit'],
  );
  await moveWorldClock(world.database, '0');
});
