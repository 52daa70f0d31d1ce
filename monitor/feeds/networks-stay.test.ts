import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addMinutes, addSensor, minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld } from '#monitor/testing/world.ts';
import { target } from './testing/feed-world.ts';

test('NET-2.4.4: no feed reads the networks that addresses talked to', async () => {
  await using world = await createWorld();
  const address = '203.0.113.10';
  const sensor = await addSensor(world);
  const usage = [{ server: '198.51.100.9', clientBytes: 100, serverBytes: 900 }];
  const minutes = [200, 60 * 24 * 3, 3].map((ago) => ({
    ...{ minute: minutesAgo(ago), address, rxBytes: 900, txBytes: 100, packets: 2, usage },
  }));
  await addMinutes(world, sensor, minutes);
  await world.facts.rollUp('all');
  const { rows } = await world.database.pool.query(
    'select distinct is_late from peer_network_hours order by 1',
  );
  assert.deepEqual(rows, [{ is_late: false }, { is_late: true }]);
  world.operations.targets = [target(address)];
  // A statement that names one of them fails from now on.
  await world.database.pool.query(
    'alter table peer_network_hours rename to a; alter table late_peer_minutes rename to b',
  );
  const { all } = world.createFeed();
  assert.ok(all.length >= 5, `${all.length} feeds`);
  for (const running of all) {
    const result = await running.runOnce();
    assert.ok(typeof result !== 'string', `${running.feed.name}: ${result}`);
    const error = (await running.state())?.lastError ?? null;
    assert.doesNotMatch(`${error} ${JSON.stringify(result)}`, /peer|relation|exist/, running.feed.name);
  }
  assert.ok(world.operations.posted.length > 0, 'something was delivered');
  assert.doesNotMatch(JSON.stringify(world.operations.posted), /198\.51\.100\./);
  await assert.rejects(
    world.facts.findPeers(
      { siteId: world.siteId, fromMinute: minutesAgo(300), toMinute: minutesAgo(0), prefix: '0.0.0.0/0' },
      1,
    ),
    /peer/,
    'the tables are away',
  );
});
