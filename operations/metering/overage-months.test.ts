import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createMetering } from '#operations/metering/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

test('API-8.6, API-8.7: months of any age that owe are found, and a closed one keeps what was free', async () => {
  await using world = await createWorld({ includedPerMonth: 10 });
  const customer = await world.createCustomer('Owing');
  const keyId = (await world.createKey(customer)).split('_')[1]!;
  const others = await world.createCustomer('Modest');
  const othersKeyId = (await world.createKey(others)).split('_')[1]!;
  const count = (n: number) =>
    Promise.all(Array.from({ length: n }, () => world.metering.countRequest(customer.tenant.id, keyId)));
  const due = () =>
    world.database.db.transaction().execute((tx) => world.metering.lockDueOverage(tx, 0, 100));
  await count(19);
  await world.metering.countRequest(others.tenant.id, othersKeyId);
  assert.deepEqual(await due(), [], 'nine requests do not make a quantum');
  await count(17);
  const [first] = await due();
  assert.deepEqual(
    [first!.tenantId, first!.count, first!.includedCount, first!.quanta, first!.chargedCountAfter],
    [customer.tenant.id, 36, 10, 2, 20],
  );
  await world.metering.closeMonths();
  const kept = async () =>
    (await world.database.pool.query('select included_count as kept from usage_months order by tenant_id'))
      .rows;
  assert.deepEqual(await kept(), [{ kept: null }, { kept: null }], 'the open month uses the live setting');
  await moveWorldClock(world.database, '32 days');
  await world.metering.closeMonths();
  const later = createMetering({
    db: () => world.database.db,
    pool: () => world.database.pool,
    clock: world.clock,
    reporter: world.reporter,
    includedPerMonth: 1_000,
    price: { unitRequests: 100_000, rateQuanta: 10_000 },
  });
  await later.closeMonths();
  assert.deepEqual(await kept(), [{ kept: 10 }, { kept: 10 }], 'a kept figure never changes');
  await world.database.db.transaction().execute(async (tx) => {
    const [last] = await later.lockDueOverage(tx, 0, 100);
    assert.equal(last!.quanta, 2, 'an earlier month is charged by what was free in it');
    await later.noteCharged(tx, last!);
  });
  assert.deepEqual(await due(), [], 'six requests are carried, none is charged twice');
});

test('metering: the days of a month add up to it, and so do its keys', async () => {
  await using world = await createWorld();
  const customer = await world.createCustomer('Adding');
  const ids = await Promise.all([1, 2].map(async () => (await world.createKey(customer)).split('_')[1]!));
  const { tenant } = customer;
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => world.metering.countRequest(tenant.id, ids[i % 2]!)),
  );
  await moveWorldClock(world.database, '32 days');
  await Promise.all(Array.from({ length: 7 }, () => world.metering.countRequest(tenant.id, ids[0]!)));
  const { rows } = await world.database.pool.query(
    `select m.count, (select sum(count) from usage_days d where d.tenant_id = m.tenant_id
         and date_trunc('month', d.day) = m.month)::int as days,
       (select sum(count) from usage_key_months k where k.tenant_id = m.tenant_id and k.month = m.month)::int as keys
     from usage_months m order by month`,
  );
  assert.deepEqual(rows, [
    { count: 40, days: 40, keys: 40 },
    { count: 7, days: 7, keys: 7 },
  ]);
});

test('API-8.7: a closed month is shown with what was free in it, the open one with what is free today', async () => {
  await using world = await createWorld({ includedPerMonth: 10 });
  const customer = await world.createCustomer('Shown');
  const tenantId = customer.tenant.id;
  const keyId = (await world.createKey(customer)).split('_')[1]!;
  const count = () =>
    Promise.all(Array.from({ length: 36 }, () => world.metering.countRequest(tenantId, keyId)));
  await count();
  const { period } = (await world.metering.usageOf(systemActor, { tenantId, period: null }))!;
  await moveWorldClock(world.database, '32 days');
  await world.metering.closeMonths();
  await count();
  const later = createMetering({
    db: () => world.database.db,
    pool: () => world.database.pool,
    clock: world.clock,
    reporter: world.reporter,
    includedPerMonth: 30,
    price: { unitRequests: 100_000, rateQuanta: 10_000 },
  });
  const shown = async (of: string | null) => {
    const month = (await later.usageOf(systemActor, { tenantId, period: of }))!;
    const fleet = (await later.fleetUsage(systemActor, month.period, 1))!;
    const [account] = fleet.accounts;
    assert.equal(account!.includedCount, month.includedCount);
    return [
      month.isOpen,
      month.includedCount,
      month.overageCount,
      account!.overageCount,
      fleet.overageQuanta,
    ];
  };
  assert.deepEqual(await shown(period), [false, 10, 26, 26, 2]);
  assert.deepEqual(await shown(null), [true, 30, 6, 6, 0]);
});

test('API-8.7: a month is closed on the terms that were in force in it, whichever process closes it', async () => {
  await using world = await createWorld({ includedPerMonth: 10 });
  const customer = await world.createCustomer('Closing');
  const keyId = (await world.createKey(customer)).split('_')[1]!;
  await Promise.all(Array.from({ length: 36 }, () => world.metering.countRequest(customer.tenant.id, keyId)));
  await world.metering.closeMonths();
  const { period } = (await world.metering.usageOf(systemActor, {
    tenantId: customer.tenant.id,
    period: null,
  }))!;
  await moveWorldClock(world.database, '32 days');
  const dearer = createMetering({
    db: () => world.database.db,
    pool: () => world.database.pool,
    clock: world.clock,
    reporter: world.reporter,
    includedPerMonth: 1_000,
    price: { unitRequests: 100, rateQuanta: 10_000 },
  });
  await dearer.closeMonths();
  const shown = (await dearer.usageOf(systemActor, { tenantId: customer.tenant.id, period }))!;
  assert.deepEqual(
    [shown.includedCount, shown.overageQuanta, shown.price],
    [10, 2, { rateQuanta: 10_000, unitRequests: 100_000 }],
  );
  const [account] = (await dearer.fleetUsage(systemActor, period, 1))!.accounts;
  assert.equal(account!.overageQuanta, 2);
  const [due] = await world.database.db.transaction().execute((tx) => dearer.lockDueOverage(tx, 0, 100));
  assert.deepEqual([due!.period, due!.quanta], [period, 2]);
});
