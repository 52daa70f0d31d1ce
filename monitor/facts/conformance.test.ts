import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { checkConformance, type StoreUnderTest } from './testing/conformance.ts';
import { createMemoryFacts } from './testing/memory-facts.ts';

/** PostgreSQL with two sensors at one site. */
async function postgresUnderTest(world: MonitorWorld): Promise<StoreUnderTest> {
  const { facts, siteId } = world;
  const second = await world.enrol('node-2');
  return {
    facts,
    origins: [world.sensor.id, second.id].map((sensorId) => ({ siteId, sensorId })),
    async append(uploads) {
      await facts.prepare(uploads.flatMap(({ minutes }) => minutes.map(({ minute }) => minute)));
      await world.database.db.transaction().execute((trx) => facts.append(trx, uploads));
    },
  };
}

test('NET-2.2.5, NET-2.2.9, NET-2.2.10: PostgreSQL answers like the rules in plain memory, rolled up or not', async () => {
  await using world = await createMonitorWorld();
  const nowSecond = Math.floor(Date.now() / 1000);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const store = await postgresUnderTest(world);
  const options = {
    model,
    seed: Number(process.env.SVC_TEST_SEED ?? 3),
    uploads: 25,
    questions: 3,
    nowSecond,
  };
  assert.deepEqual(await checkConformance(store, options), []);
});
