import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { formatQuanta, judgeAccess, judgeDeployment } from '#operations/billing/index.ts';
import { chargeServerHours } from '#operations/servers/index.ts';
import { lockDueHours } from '#operations/servers/store.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import type { AccessFacts } from '#operations/views/tenant-store.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

test('money leaves as decimal text with two to four places', () => {
  const shown = [89, 60_000, 1_000_000, 0, -89, -12_345, 100, 10].map(formatQuanta);
  assert.deepEqual(shown, ['0.0089', '6.00', '100.00', '0.00', '-0.0089', '-1.2345', '0.01', '0.001']);
});

test('API-5.4: what opens and what locks the API', () => {
  const base: AccessFacts = {
    tenantId: 1,
    status: 'ACTIVE',
    hasBillingProfile: true,
    balanceQuanta: 0,
    hasChargeableCard: false,
    hasDeposit: false,
    hasLiveServer: false,
  };
  const general = (facts: Partial<AccessFacts>) => judgeAccess({ ...base, ...facts })?.reason ?? null;
  const deploy = (facts: Partial<AccessFacts>) => judgeDeployment({ ...base, ...facts })?.reason ?? null;
  assert.equal(general({}), 'hourly_not_eligible');
  for (const facts of [
    { balanceQuanta: 1 },
    { hasChargeableCard: true },
    { hasDeposit: true },
    { hasLiveServer: true },
  ])
    assert.equal(general(facts), null, JSON.stringify(facts));
  assert.equal(general({ balanceQuanta: -1, hasDeposit: true }), null, 'debt alone never blocks a request');
  assert.equal(general({ balanceQuanta: 1, status: 'SUSPENDED' }), 'account_suspended');
  assert.equal(general({ balanceQuanta: 1, status: 'CLOSED' }), 'account_closed');
  assert.equal(general({ balanceQuanta: 1, hasBillingProfile: false }), 'no_billing_profile');
  assert.equal(deploy({ balanceQuanta: 1 }), null);
  assert.equal(
    deploy({ balanceQuanta: -1, hasChargeableCard: true }),
    null,
    'API-5.5: the card will be charged',
  );
  assert.equal(deploy({ hasDeposit: true }), 'credit_required');
  assert.equal(deploy({ hasLiveServer: true, balanceQuanta: -5 }), 'credit_required');
});

test('a deposit is entered once for its reference, and the balance is the sum of the ledger', async () => {
  const { tenant } = await world.createCustomer('Ledger');
  const deposit = { amountQuanta: 500, reference: 'transfer-1', description: 'Transfer' };
  const entered = await Promise.all(
    Array.from({ length: 8 }, () => world.billing.addDeposit(systemActor, tenant.id, deposit)),
  );
  assert.equal(entered.filter(Boolean).length, 1);
  const entries = await world.billing.listEntries(systemActor, tenant.id, 100);
  const sum = entries.reduce((total, entry) => total + entry.amountQuanta, 0);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), sum);
  assert.equal(sum, 1_000_500);
});

test('a deposit is an amount above zero', async () => {
  const { tenant } = await world.createCustomer('Nothing');
  for (const amountQuanta of [0, -1, 0.5, Number.NaN])
    await assert.rejects(
      world.billing.addDeposit(systemActor, tenant.id, { amountQuanta, reference: 'x', description: 'x' }),
      /above zero/,
    );
});

test('no hour is charged that begins after the server’s destruction was asked for, however long it takes', async () => {
  await using stuck = await createWorld();
  const { tenant } = await stuck.createCustomer('Stuck');
  const { serverId } = await stuck.deploy(tenant, 'stuck');
  const spent = async () => 1_000_000 - (await stuck.billing.balanceOf(systemActor, tenant.id));
  await chargeServerHours(stuck.database.db);
  assert.equal(await spent(), 60);
  await stuck.servers.destroyServer(systemActor, tenant.id, serverId);
  await moveWorldClock(stuck.database, '3 days');
  await chargeServerHours(stuck.database.db);
  assert.equal(await spent(), 60, 'its hypervisor has been away for three days');
  await stuck.jobs.drain();
  await chargeServerHours(stuck.database.db);
  assert.equal(await spent(), 60);
});

test('an account is closed only when nothing of it runs and costs on', async () => {
  const { tenant } = await world.createCustomer('Closing');
  const { serverId } = await world.deploy(tenant, 'last');
  const close = () => world.accounts.setTenantStatus(systemActor, tenant.id, 'CLOSED');
  await assert.rejects(close(), /still has a server/);
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await assert.rejects(close(), /still has a server/, 'its destruction is under way');
  await world.jobs.drain();
  await close();
  assert.equal((await world.accounts.findTenant(tenant.id))?.status, 'CLOSED');
});

test('workers that charge hours take balances in one order, for all sets of servers', async () => {
  await using crossed = await createWorld();
  const [first, second] = [await crossed.createCustomer('First'), await crossed.createCustomer('Second')];
  for (const { tenant } of [first, second, second, first]) await crossed.deploy(tenant, `for-${tenant.id}`);
  const { db } = crossed.database;
  const held: number[][] = [];
  await db.transaction().execute(async (one) => {
    held.push((await lockDueHours(one, { afterServerId: 0, limit: 2 })).map((hour) => hour.tenantId));
    await db.transaction().execute(async (other) => {
      held.push((await lockDueHours(other, { afterServerId: 0, limit: 2 })).map((hour) => hour.tenantId));
    });
  });
  assert.deepEqual(held, Array(2).fill([first.tenant.id, second.tenant.id]));
});

test('hours are charged as they begin, once, made up for after a pause, and never beyond the month’s cap', async () => {
  await using later = await createWorld();
  const { tenant } = await later.createCustomer('Hours');
  const { serverId } = await later.deploy(tenant, 'hourly');
  const spent = async () => 1_000_000 - (await later.billing.balanceOf(systemActor, tenant.id));
  const charge = () => chargeServerHours(later.database.db);
  await Promise.all([charge(), charge(), charge()]);
  assert.equal(await spent(), 60, 'the hour that runs');
  await moveWorldClock(later.database, '150 minutes');
  await Promise.all([charge(), charge()]);
  await charge();
  assert.equal(await spent(), 180);
  await later.servers.destroyServer(systemActor, tenant.id, serverId);
  await later.database.pool.query(
    "update jobs set run_at = svc_now() - interval '1 day' where finished_at is null",
  );
  await later.jobs.drain();
  await moveWorldClock(later.database, '9 hours');
  await charge();
  assert.equal(await spent(), 180, 'a destroyed server costs nothing more');
  await later.database.pool.query(
    "update plans set hourly_quanta = 1000, monthly_cap_quanta = 2500 where slug = 'small'",
  );
  const capped = await later.createCustomer('Capped');
  await later.deploy(capped.tenant, 'capped');
  // A whole day within one month, independent of today's date.
  await later.database.pool.query(
    `update servers set provisioned_at = date_trunc('month', svc_now() at time zone 'utc') at time zone 'utc' - interval '10 days',
       deleted_at = date_trunc('month', svc_now() at time zone 'utc') at time zone 'utc' - interval '9 days'
     where name = 'capped'`,
  );
  await charge();
  assert.equal(1_000_000 - (await later.billing.balanceOf(systemActor, capped.tenant.id)), 2_500);
});
