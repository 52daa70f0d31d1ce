import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createMonitorWorld, testMinute } from '#monitor/testing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { checkAddresses, share } from './index.ts';

const [first, second] = ['203.0.113.10', '203.0.113.11'];

/** Places an address on a node without a sensor, without the lock that changes of placements take. */
const place = (trx: Queryable, address: string, isUnique = true) =>
  sql`insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
    values (7, 1, 'another-node', '02:00:00:00:00:01', 'br0', ${address}, ${isUnique}, '-infinity')`.execute(
    trx,
  );

for (const isShared of [true, false])
  test(`a transaction ${isShared ? 'under share looks up each address once' : 'without share looks up an address each time'}`, async () => {
    await using world = await createMonitorWorld();
    await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
    await world.database.db.transaction().execute(async (trx) => {
      const isForeign = async (...addresses: string[]) => {
        const spoken = addresses.map((subject) => ({ sensorId: world.sensor.id, subject }));
        const check = await checkAddresses(trx, spoken);
        return addresses.map((address) => check(world.sensor.id, address, testMinute));
      };
      if (isShared) await share(trx);
      assert.deepEqual(await isForeign(first), [false]);
      await place(trx, first);
      await place(trx, second);
      assert.deepEqual(await isForeign(first, second), [!isShared, true]);
      if (isShared) await share(trx);
      assert.deepEqual(await isForeign(second, first), [true, !isShared]);
    });
  });

test('NET-2.3: an address of several networks belongs to another node where its network was seen, or where that is unknown', async () => {
  await using world = await createMonitorWorld();
  await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
  await world.database.db.transaction().execute(async (trx) => {
    await place(trx, first);
    await place(trx, second, false);
    const spoken = [first, second].map((subject) => ({ sensorId: world.sensor.id, subject }));
    const check = await checkAddresses(trx, spoken);
    const isForeign = (address: string, ...segments: string[]) =>
      check(world.sensor.id, address, testMinute, segments);
    assert.deepEqual(
      [
        isForeign(second, 'br0'),
        isForeign(second, 'br1'),
        isForeign(second, 'br1', 'br0'),
        isForeign(second, ''),
      ],
      [true, false, true, true],
    );
    assert.equal(isForeign(first, 'br1'), true, 'one that no other network has is told by itself');
  });
});
