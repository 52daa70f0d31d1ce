import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import { addSensor } from '#monitor/testing/facts.ts';
import { createWorld } from '#monitor/testing/world.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';
import { createPostgresStore } from './index.ts';

const historyMax = 500;
const uploads = 60;

const windowAt = (startedAtMs: number): LiveWindow => ({
  capture: 'eth0',
  role: 'uplink',
  startedAtMs,
  observedMs: 10_000,
  totals: {
    packets: 1,
    ipPackets: 1,
    ipBytes: 100,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
  },
  hosts: [],
  hostsLeftOut: 0,
});

test('a site at its length is looked through once in a hundredth of its length, and readers see no window over it', async () => {
  await using world = await createWorld();
  const sensor = { id: await addSensor(world), siteId: world.siteId };
  const looks: string[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(world.database.pool) }),
    log: ({ query }: LogEvent) => void (query.sql.includes('offset') && looks.push(query.sql)),
  });
  const store = createPostgresStore(() => db as typeof world.database.db, {
    historySeconds: 86_400,
    historyMax,
  });
  const newest = Math.floor(Date.now() / 10_000) * 10_000;
  const runId = randomUUID();
  const at = (i: number) => newest - (historyMax + uploads - i) * 10_000;
  await store.add(
    sensor,
    runId,
    Array.from({ length: historyMax }, (_, i) => windowAt(at(i))),
  );
  looks.length = 0;
  for (let i = 0; i < uploads; i += 1) {
    await store.add(sensor, runId, [windowAt(at(historyMax + i))]);
    const { rows } = await world.database.pool.query('select count(*)::int as n from live_windows');
    assert.ok(rows[0].n <= historyMax * 1.01, `the table has ${rows[0].n} windows`);
    const asked = { siteId: sensor.siteId, sinceMs: 0, limit: 10_000, hostsMax: 10_000, bytesMax: 1e9 };
    const { windows, isLimited } = await store.list(asked);
    assert.deepEqual([windows.length, isLimited], [historyMax, false]);
  }
  assert.equal(looks.length, uploads / (historyMax / 100 + 1));
});
