import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { createProtectionSection } from './index.ts';

test('counting the protected addresses of all sensors of a large site reads each allocation and each place of a server once', async () => {
  await using world = await createMonitorWorld();
  const [servers, nodes] = [1_000, 20];
  await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
  for (let i = 2; i <= nodes; i += 1) await world.enrol(`node-${i}`);
  await world.rows(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
    select n, 1, n, 7, '203.0.0.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, ${servers}) n`,
  );
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
    select 7, n, 'node-' || 1 + n % ${nodes}, '02:00:00:00:00:01', 'br0', '203.0.0.0'::inet + n, true, '-infinity'
    from generate_series(1, ${servers}) n`,
  );
  await world.database.db.transaction().execute(async (trx) => {
    const sensors = (await world.sensors.list(world.siteId)).map(({ id, siteId, node, clusterId }) => ({
      sensorId: id,
      siteId,
      node: { name: node, clusterId },
    }));
    const section = createProtectionSection({ db: () => trx, reader: () => trx, sites: world.sites });
    const counts = [...(await section.count!(sensors)).values()].map(({ entries }) => entries);
    assert.deepEqual([counts.length, new Set(counts)], [nodes, new Set([servers / nodes])]);
    const { rows } = await sql<{ name: string; reads: number }>`
      select relname as name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as reads
      from pg_stat_xact_user_tables where relname in ('vm_placements', 'allocation_targets')`.execute(trx);
    for (const { name, reads } of rows) assert.ok(reads <= servers, `${reads} rows of ${name} were read`);
    assert.equal(rows.length, 2);
  });
});

test("a node's plan reads the allocations of its cluster twice and the places once, counting its entries each once, of other clusters none", async () => {
  await using world = await createMonitorWorld();
  const [clusters, servers, nodes] = [10, 500, 10];
  await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
  const { id: other } = await world.sites.create(systemActor, 'Other');
  await world.rows(
    `insert into site_clusters (cluster_id, site_id) select c, $1 from generate_series(1, ${clusters}) c where c <> 7`,
    [other],
  );
  const all = `generate_series(1, ${clusters}) c, generate_series(1, ${servers}) n`;
  await world.rows(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
    select c * 1000 + n, 1, c * 1000 + n, c, '203.0.0.0'::inet + c * 1000 + n, '2026-01-01T00:00:00Z', true from ${all}`,
  );
  // Of one in a hundred no node is known.
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
    select c, c * 1000 + n, 'node-' || 1 + n % ${nodes}, '02:00:00:00:00:01', 'br0', '203.0.0.0'::inet + c * 1000 + n, true, '-infinity'
    from ${all} where n % 100 <> 0`,
  );
  await world.rows('analyze allocation_targets, vm_placements');
  await world.database.db.transaction().execute(async (trx) => {
    // As in production: planned for these values.
    await sql`set local plan_cache_mode = force_custom_plan`.execute(trx);
    const section = createProtectionSection({ db: () => trx, reader: () => trx, sites: world.sites });
    const node = { name: 'node-3', clusterId: null };
    const { protected_targets: targets } = await section.read({ siteId: world.siteId, node });
    const ofNode = servers / nodes;
    assert.equal(targets!.length, ofNode + servers / 100);
    const countReads = async () => {
      const { rows } = await sql<{ reads: number }>`
        select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as reads from pg_stat_xact_user_tables
        where relname in ('vm_placements', 'allocation_targets') order by relname`.execute(trx);
      return rows.map(({ reads }) => reads) as [number, number];
    };
    const [ofTargets, ofPlaces] = await countReads();
    assert.ok(ofTargets <= 2 * servers, `${ofTargets} allocations were read`);
    assert.ok(ofPlaces <= servers + ofNode, `${ofPlaces} places were read`);
    const counted = await section.count!([{ sensorId: 1, siteId: world.siteId, node }]);
    assert.equal(counted.get(1)!.entries, targets!.length);
    const [targetsThen, placesThen] = await countReads();
    assert.ok(targetsThen - ofTargets <= servers, `${targetsThen - ofTargets} allocations were counted`);
    assert.ok(placesThen - ofPlaces <= servers, `${placesThen - ofPlaces} places were counted`);
  });
});
