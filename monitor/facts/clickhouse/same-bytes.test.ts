import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, createMonitorWorld, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { openScope } from '../contract/control-scope.ts';
import type { Exploration } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import { createMemoryFacts } from '../memory/memory-facts.ts';
import { randomToken, seededRandom } from '../testing/random-uploads.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

/** Captures of two sensors that saw the same bytes, and each its own number of packets. */
async function makeStores(world: Awaited<ReturnType<typeof createMonitorWorld>>, own: FactStore) {
  const model = createMemoryFacts({ nameApplication, nowSecond: () => testMinute + 600 });
  const second = await world.enrol('node-2');
  const random = seededRandom(7);
  // The number of a capture is of when it came first: neither the sensor's order nor that of names.
  const told = [
    { sensorId: second.id, capture: 'a0', packets: 11 },
    { sensorId: world.sensor.id, capture: 'b1', packets: 22 },
    { sensorId: world.sensor.id, capture: 'a9', packets: 33 },
    { sensorId: world.sensor.id, capture: 'c0', packets: 44 },
  ];
  for (const { sensorId, capture, packets } of told) {
    const minute = captureMinute({
      capture,
      hosts: [{ ...host('192.0.2.10', 500, 50), packets }],
      usage: [usageRow({ name: 'example.net', packets })],
    });
    const upload = {
      origin: { siteId: world.siteId, sensorId },
      token: randomToken(random),
      minutes: [minute],
      gaps: [],
    };
    await model.append([upload]);
    await world.database.db.transaction().execute((trx) => own.append([upload], openScope(trx)));
  }
  return model;
}

test('NET-2.2.5, NET-2.2.10: of captures that saw the same bytes the first counts by sensor and name', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const store = createClickhouseFacts({
    client: engine.client,
    db: () => world.database.db,
    nameApplication,
  });
  await store.migrate();
  const model = await makeStores(world, store);
  const range = { siteId: world.siteId, fromMinute: testMinute, toMinute: testMinute + 60 };
  for (const source of ['addresses', 'applications'] as const) {
    const asked: Exploration = {
      ...{ ...range, source, filters: [], owners: [], networks: [], measure: 'packets', by: ['sensor'] },
      ...{ stepSeconds: 60, order: 'size', rows: { limit: 5 } },
    };
    const found = await store.explore(asked);
    assert.deepEqual({ ...found, grains: [] }, await model.explore(asked));
    assert.deepEqual(
      found.rows.map(({ key, packets }) => ({ key, packets })),
      [{ key: [String(world.sensor.id)], packets: 33 }],
      source,
    );
  }
});
