import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, createMonitorWorld, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { openScope } from '../contract/control-scope.ts';
import type { Exploration, ExploredDimension } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import { createMemoryFacts } from '../memory/memory-facts.ts';
import { randomToken, seededBelow } from '../testing/random-uploads.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

type World = Awaited<ReturnType<typeof createMonitorWorld>>;

interface Told {
  role: 'uplink' | 'bridge';
  sensorId: number;
  capture: string;
  packets: number;
  /** Of the only address, and of what it used. */
  bytes: number;
  address: string;
  deviceKey?: string;
}

/** ClickHouse and the rules in plain memory, both with these captures of one minute, each an upload. */
async function makeStores(
  world: World,
  client: Awaited<ReturnType<typeof createChdbEngine>>['client'],
  told: readonly Told[],
) {
  const store: FactStore & { migrate(): Promise<void> } = createClickhouseFacts({
    ...{ client, db: () => world.database.db, nameApplication },
  });
  await store.migrate();
  const model = createMemoryFacts({ nameApplication, nowSecond: () => testMinute + 600 });
  const random = seededBelow(7);
  for (const { role, sensorId, capture, packets, bytes, address, deviceKey } of told) {
    const minute = captureMinute({
      ...{ capture, role },
      hosts: [{ ...host(address, bytes, 50, deviceKey), packets }],
      usage: [usageRow({ client: address, name: 'example.net', serverBytes: bytes, packets })],
    });
    const upload = {
      origin: { siteId: world.siteId, sensorId },
      token: randomToken(random),
      minutes: [minute],
      gaps: [],
    };
    await model.append([upload]);
    await world.database.db.transaction().execute((trx) => store.append([upload], openScope(trx)));
  }
  return { store, model };
}

/** Packets by this, the largest first, of both sources; as in plain memory. */
async function packetsBy(
  world: World,
  { store, model }: Awaited<ReturnType<typeof makeStores>>,
  by: ExploredDimension,
) {
  const found: unknown[] = [];
  for (const source of ['addresses', 'applications'] as const) {
    const asked: Exploration = {
      ...{ siteId: world.siteId, fromMinute: testMinute, toMinute: testMinute + 60, source, by: [by] },
      ...{ filters: [], owners: [], networks: [], measure: 'packets', order: 'size', rows: { limit: 5 } },
      stepSeconds: 60,
    };
    const answer = await store.explore(asked);
    assert.deepEqual({ ...answer, grains: [] }, await model.explore(asked));
    found.push(answer.rows.map(({ key, packets }) => [...key, packets]));
  }
  return found;
}

test('NET-2.2.5, NET-2.2.10: of captures that saw the same bytes the first counts by sensor and name', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const second = await world.enrol('node-2');
  const { id } = world.sensor;
  const same = { role: 'uplink', address: '192.0.2.10', bytes: 500 } as const;
  // The number of a capture is of when it came first: neither the sensor's order nor that of names.
  const stores = await makeStores(world, engine.client, [
    { ...same, sensorId: second.id, capture: 'a0', packets: 11 },
    { ...same, sensorId: id, capture: 'b1', packets: 22 },
    { ...same, sensorId: id, capture: 'a9', packets: 33 },
    { ...same, sensorId: id, capture: 'c0', packets: 44 },
  ]);
  const first = [[String(id), 33]];
  assert.deepEqual(await packetsBy(world, stores, 'sensor'), [first, first]);
});

test('NET-2.2.5, NET-2.2.10: of an address in several segments the strongest capture of each counts', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const address = '10.0.0.9';
  const of = { role: 'bridge', sensorId: world.sensor.id, address } as const;
  const stores = await makeStores(world, engine.client, [
    { ...of, capture: 'a', packets: 11, bytes: 500, deviceKey: 'br0|02:00:00:00:00:01' },
    { ...of, capture: 'b', packets: 22, bytes: 900, deviceKey: 'br0|02:00:00:00:00:01' },
    { ...of, capture: 'c', packets: 33, bytes: 700, deviceKey: 'br0|02:00:00:00:00:01' },
    { ...of, capture: 'd', packets: 44, bytes: 600, deviceKey: 'br1|02:00:00:00:00:02' },
    // Of no segment that is known, which may be either.
    { ...of, capture: 'e', packets: 99, bytes: 9000 },
  ]);
  const each = [
    [`${address}%br1`, 44],
    [`${address}%br0`, 22],
  ];
  assert.deepEqual(await packetsBy(world, stores, 'address'), [each, each]);
});
