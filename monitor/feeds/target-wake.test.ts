import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { partsOfFeed } from '#monitor/composition.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { World } from '#monitor/testing/world.ts';
import { createFeedWorld, target } from './testing/feed-world.ts';

let world: World;
before(async () => {
  ({ world } = await createFeedWorld());
});
after(() => world[Symbol.asyncDispose]());

test('what operations lists is read again without any time passing when a cluster is mapped, and when a server is placed', {
  timeout: 60_000,
}, async () => {
  // This clock never moves: what would wait for an interval waits for ever.
  const clock = createTestClock(Date.now());
  const feeds = world.createFeed({ clock });
  world.operations.targets = [];
  let lists = 0;
  let onList = () => {};
  world.operations.intercept = (_request, _response, path) => {
    if (path !== '/protect/targets/') return false;
    lists += 1;
    onList();
    return false;
  };
  const nextList = () =>
    new Promise<void>((done) => {
      onList = done;
    });
  const protectedNow = async () =>
    (
      await world.database.pool.query<{ address: string }>(
        'select host(address) as address from allocation_targets',
      )
    ).rows.map(({ address }) => address);
  const first = nextList();
  const parts = partsOfFeed({ database: world.database, feeds }, feeds.find('telemetry'));
  for (const part of parts) await part.start();
  try {
    await first;
    while (clock.waiting() === 0) await new Promise((done) => setImmediate(done));
    assert.deepEqual([lists, await protectedNow()], [1, []]);
    for (const [i, change] of [
      () => world.sites.mapCluster(systemActor, 70 + 1, world.siteId),
      () =>
        world.database.pool.query(
          `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
           values (7, 5, 'node-1', '02:00:00:00:00:05', 'br0', '203.0.113.9', true, now())`,
        ),
    ].entries()) {
      const again = nextList();
      world.operations.targets = [target(`203.0.113.${10 + i}`)];
      await change();
      await again;
      while ((await protectedNow())[0] !== `203.0.113.${10 + i}`)
        await new Promise((done) => setImmediate(done));
      while (clock.waiting() === 0) await new Promise((done) => setImmediate(done));
    }
    assert.equal(lists, 3, 'each change is one list');
  } finally {
    for (const part of parts.toReversed()) await part.stop();
  }
});
