import assert from 'node:assert/strict';
import { test } from 'node:test';
import { captureMinute, createMonitorWorld, createSpool, host, testMinute } from '#monitor/testing/index.ts';

/** An address is read for every allocation at every tick, so the cost must not grow with other data. */
test("an address's hour is read by its key, from its day's partitions alone", async () => {
  await using world = await createMonitorWorld();
  const day = 86_400;
  const spool = createSpool();
  for (const minute of [testMinute, testMinute - day, testMinute - 2 * day, testMinute - 3 * day]) {
    await world.send(spool.upload([captureMinute({ minute, hosts: [host('192.0.2.10', 1, 1)] })]));
  }
  await world.inbox.drain();
  const client = await world.database.pool.connect();
  await client.query('set enable_seqscan = off');
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    `explain (costs off) select * from strongest_host_minutes($1, to_timestamp($2), to_timestamp($3)) where address = $4`,
    [world.siteId, testMinute, testMinute + 60, '192.0.2.10'],
  );
  client.release();
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  const partitions = new Set(plan.match(/(host|capture)_minutes_p\d{8}(?= )/g));
  assert.equal(partitions.size, 2, plan);
  assert.match(plan, /Index Cond: \(\(site_id = '?\d+'?(::bigint)?\) AND \(address = /, plan);
});
