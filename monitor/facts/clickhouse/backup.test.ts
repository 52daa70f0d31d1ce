// Slow: backs up and restores a ClickHouse between random uploads.
/** ClickHouse's own backup, as `docs/operating/backup.md` describes it, here into the memory of the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMoveWorld } from '../move/testing/move-world.ts';

const tables = [
  ...['capture_minutes', 'host_minutes', 'application_facts', 'endpoint_pairs', 'peer_minutes'],
  ...['store_identity', 'schema_versions'],
];

test('a restored ClickHouse answers as before, takes nothing twice that came before the backup, and goes on', async () => {
  await using world = await createMoveWorld();
  await world.startOnClickhouse();
  const before = world.uploads(12);
  await world.append('clickhouse', before);
  await world.model.append(before);
  await world.command("backup database facts to Memory('copy')");
  for (const table of tables) await world.command(`drop table ${table} sync`);
  await world.command("restore database facts from Memory('copy')");
  // The server knows no tokens of inserts any more: what was applied is known by the monitor's own database.
  await world.append('clickhouse', before);
  const later = world.uploads(4);
  await world.append('clickhouse', later);
  await world.model.append(later);
  assert.deepEqual(await world.compare('clickhouse'), []);
});
