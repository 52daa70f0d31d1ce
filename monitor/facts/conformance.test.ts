import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { createFactStore, type FactStore } from './index.ts';
import { checkConformance, type StoreUnderTest } from './testing/conformance.ts';
import { createMemoryFacts } from './testing/memory-facts.ts';
import { randomUpload, seededRandom } from './testing/random-uploads.ts';

/** PostgreSQL with two sensors at one site. */
async function postgresUnderTest(world: MonitorWorld): Promise<StoreUnderTest> {
  const { facts, siteId } = world;
  const second = await world.enrol('node-2');
  // Every roll-up by a process that knows nothing of those before it.
  const rollUp: FactStore['rollUp'] = (hours, mayGoOn) =>
    createFactStore({ db: () => world.database.db, nameApplication }).rollUp(hours, mayGoOn);
  return {
    facts: { ...facts, rollUp },
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
    questions: 4,
    nowSecond,
  };
  assert.deepEqual(await checkConformance(store, options), []);
});

test('NET-8.8: a process that finds minutes judged by another one makes the room for what it makes of them', async () => {
  await using world = await createMonitorWorld();
  const nowSecond = Math.floor(Date.now() / 1000);
  const store = await postgresUnderTest(world);
  const minute = Math.floor(nowSecond / 60) * 60 - 26 * 3600;
  const origin = store.origins[0]!;
  const random = seededRandom(1);
  const uploads = Array.from({ length: 5 }, () =>
    randomUpload(random, { origins: [origin], minutes: [minute] }),
  );
  await store.append(uploads);
  const unjudged = () => world.rows('select 1 from unjudged_minutes');
  await store.facts.rollUp('all', async () => false);
  assert.equal((await unjudged()).length, 1, 'who may not go on leaves it');
  await store.facts.rollUp('all');
  assert.deepEqual(await unjudged(), []);
  const range = { siteId: origin.siteId, fromMinute: minute - 86_400, toMinute: minute + 86_400 };
  const ask = () => store.facts.rankApplications({ ...range, direction: null, limit: 50 });
  const before = await ask();
  assert.ok(before.total > 0);
  for (const table of ['name_tens', 'name_days', 'name_day_locals']) {
    const partitions = await world.rows<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = '${table}'::regclass`,
    );
    for (const { name } of partitions) await world.rows(`drop table ${name}`);
  }
  await world.rows('update rolled_tens set is_dirty = true');
  await world.rows('update rolled_days set is_dirty = true');
  await store.facts.rollUp('all');
  assert.deepEqual(
    await world.rows(
      'select 1 from rolled_tens where is_dirty union select 1 from rolled_days where is_dirty',
    ),
    [],
  );
  assert.deepEqual(await ask(), before);
});
