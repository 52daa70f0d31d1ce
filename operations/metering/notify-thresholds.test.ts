import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { takeUndispatched } from '#operations/events/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createUsageThresholdLoop } from './index.ts';

test('an account hears once of each share of its free requests, and anew in the next month', async () => {
  await using world = await createWorld({ includedPerMonth: 10 });
  const customer = await world.createCustomer('Heavy');
  const [, keyId] = (await world.createKey(customer)).split('_');
  const db = () => world.database.db;
  const loop = () =>
    createUsageThresholdLoop({ db, clock: systemClock, reporter: silentReporter, includedPerMonth: 10 });
  const heard = async () => {
    await world.database.pool.query('delete from leases');
    await Promise.all([loop().runOnce(), loop().runOnce()]);
    const events = await db()
      .transaction()
      .execute((tx) => takeUndispatched(tx, 100));
    return events.filter((event) => event.type === 'usage.threshold').map((event) => event.data.percent);
  };
  const use = async (requests: number) => {
    for (let i = 0; i < requests; i += 1) await world.metering.countRequest(customer.tenant.id, keyId!);
  };
  await use(4);
  assert.deepEqual(await heard(), []);
  await use(1);
  assert.deepEqual(await heard(), [50]);
  await use(2);
  assert.deepEqual(await heard(), []);
  await use(9);
  assert.deepEqual(await heard(), [80, 100]);
  await use(20);
  assert.deepEqual(await heard(), []);
  await world.database.pool.query("update usage_months set month = (month - interval '1 month')::date");
  await use(5);
  assert.deepEqual(await heard(), [50]);
});
