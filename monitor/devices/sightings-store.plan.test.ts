import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findNeeds, insertBindings, upsertDevices } from './sightings-store.ts';

test('what a batch tells of known devices is looked up by key, however many devices there are', async () => {
  await using world = await createMonitorWorld();
  const { db } = world.database;
  const { siteId } = world;
  const minute = 1_700_000_040;
  const known = Array.from({ length: 1200 }, (_, i) => ({
    siteId,
    segment: 'br0',
    mac: `02:00:00:00:${(i >> 8).toString(16).padStart(2, '0')}:${(i & 255).toString(16).padStart(2, '0')}`,
    address: `10.0.${i >> 8}.${i & 255}`,
    firstMinute: minute,
    lastMinute: minute,
  }));
  const devices = await upsertDevices(
    db,
    known.map((one) => ({ ...one, manufacturer: null })),
  );
  const idOf = new Map(devices.map((device) => [device.mac, device.id]));
  await insertBindings(
    db,
    known.map((one) => ({ ...one, id: null, deviceId: idOf.get(one.mac)!, endedMs: null, endedBy: null })),
  );
  await sql`analyze devices, ip_bindings`.execute(db);
  const told = known
    .filter((_, i) => i % 6 === 0)
    .map((one) => ({ ...one, minutes: [minute + 60], addressSegment: 'br0', isNeighbour: false }));
  await db.transaction().execute(async (trx) => {
    // What the session did before is counted too, until its statistics are handed on.
    const before = await countReads(trx);
    assert.deepEqual(await findNeeds(trx, told), []);
    const after = await countReads(trx);
    assert.equal(after.devices - before.devices, told.length);
    // Its own binding, and whether another claims the address.
    assert.equal(after.bindings - before.bindings, 2 * told.length);
  });
});

async function countReads(trx: Queryable): Promise<{ devices: number; bindings: number }> {
  const { rows } = await sql<{ table: string; reads: number }>`
    select relname as table, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as reads
    from pg_stat_xact_user_tables where relname in ('devices', 'ip_bindings')`.execute(trx);
  const reads = new Map(rows.map((row) => [row.table, row.reads]));
  return { devices: reads.get('devices') ?? 0, bindings: reads.get('ip_bindings') ?? 0 };
}
