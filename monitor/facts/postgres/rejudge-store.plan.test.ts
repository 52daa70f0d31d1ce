import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { captureMinute, createMonitorWorld, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { rejudgeAddresses } from './judge-store.ts';

test('judging an address again looks up where its server was once, however many minutes it has', async () => {
  await using world = await createMonitorWorld();
  const address = '203.0.113.10';
  const spool = createSpool();
  const minutes = Array.from({ length: 120 }, (_, i) =>
    captureMinute({ minute: testMinute - i * 60, hosts: [host(address, 1, 1)] }),
  );
  await world.apply(spool.upload(minutes.slice(0, 60)), spool.upload(minutes.slice(60)));
  await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
    values (7, 1, 'another-node', '02:00:00:00:00:01', 'br0', $1, true, '-infinity')`,
    [address],
  );
  const isForeign = async () =>
    (await world.rows<{ n: number }>('select count(*)::int as n from host_minutes where is_foreign'))[0]!.n;
  assert.equal(await isForeign(), 0);
  await world.database.db.transaction().execute(async (trx) => {
    await rejudgeAddresses(trx, [{ address, since: Number.NEGATIVE_INFINITY }]);
    const { rows } = await sql<{ reads: number }>`
      select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as reads
      from pg_stat_xact_user_tables where relname = 'vm_placements'`.execute(trx);
    assert.ok(rows[0]!.reads <= 3, `${rows[0]!.reads} places were read for ${minutes.length} minutes`);
  });
  assert.equal(await isForeign(), minutes.length);
});
