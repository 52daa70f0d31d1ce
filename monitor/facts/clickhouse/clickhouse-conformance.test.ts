import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { CrashingDatabase } from '#service-kit/testing/crash-injection.ts';
import { createMemoryFacts } from '../memory/memory-facts.ts';
import { checkConformance, type StoreUnderTest } from '../testing/conformance.ts';
import { checkCrashPoints } from '../testing/crash-points.ts';
import { createMoves, doubling, engineUnderTest, losing, type Plant } from '../testing/engines.ts';
import { checkGaps } from '../testing/gaps.ts';
import { checkQuietSteps } from '../testing/quiet-steps.ts';
import { checkFirstCapture, checkSegments } from '../testing/who-counts.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import type { FactClient } from './engine-store.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

/** ClickHouse, as a process sees it that may crash before and after each of its inserts. */
function crashingClient(client: FactClient, process: CrashingDatabase): FactClient {
  const step = () => sql`select 1`.execute(process.db);
  return {
    query: client.query.bind(client),
    command: client.command.bind(client),
    close: async () => {},
    async exec(parameters) {
      await step();
      const result = await client.exec(parameters as Parameters<FactClient['exec']>[0]);
      await step();
      return result;
    },
  } as FactClient;
}

async function clickhouseUnderTest(
  world: MonitorWorld,
  client: FactClient,
  plant?: Plant,
): Promise<StoreUnderTest> {
  const facts = createClickhouseFacts({ client, db: () => world.database.db, nameApplication });
  await facts.migrate();
  const create = (process: CrashingDatabase) =>
    createClickhouseFacts({ client: crashingClient(client, process), db: () => process.db, nameApplication });
  return await engineUnderTest(world, facts, create, plant);
}

const seeds = (process.env.SVC_TEST_SEED ?? '3').split(',').map(Number);

for (const seed of seeds)
  test(`NET-2.2.5, NET-2.2.9, NET-2.2.10: ClickHouse answers like the rules in plain memory; seed ${seed}`, async () => {
    await using world = await createMonitorWorld();
    await using engine = await createChdbEngine();
    const nowSecond = Math.floor(Date.now() / 1000);
    const store = await clickhouseUnderTest(world, engine.client);
    const { move, book } = await createMoves(world, nowSecond, store.facts);
    store.move = move;
    const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond, book });
    const options = { model, seed, uploads: 20, questions: 1, nowSecond };
    assert.deepEqual(await checkConformance(store, options), []);
  });

test('NET-2.4.2: ClickHouse trims gaps of unobserved minutes like the rules in plain memory', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  await checkGaps(await clickhouseUnderTest(world, engine.client));
});

test('NET-2.2.10: ClickHouse explores no steps in which no address had traffic, though captures listened', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  await checkQuietSteps(await clickhouseUnderTest(world, engine.client));
});

for (const [what, check] of [
  ['of captures that saw the same bytes the first by sensor and name', checkFirstCapture],
  ['of an address in several segments the strongest capture of each', checkSegments],
] as const)
  test(`NET-2.2.5, NET-2.2.10: ClickHouse counts ${what}`, async () => {
    await using world = await createMonitorWorld();
    await using engine = await createChdbEngine();
    await check(await clickhouseUnderTest(world, engine.client));
  });

async function checkEngine(plant?: Plant) {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const nowSecond = Math.floor(Date.now() / 1000);
  const store = await clickhouseUnderTest(world, engine.client, plant);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  return await checkCrashPoints(store, { model, seed: seeds[0]!, questions: 1, nowSecond, compareEvery: 12 });
}

test('NET-7.1: an append that crashes after any of its steps and is repeated adds once; ClickHouse', async () => {
  const { offences, steps } = await checkEngine();
  assert.deepEqual(offences, []);
  assert.ok(steps >= 15, `${steps} steps`);
});

test('the crash points show an append that counts twice, and one that is lost; ClickHouse', async () => {
  assert.notDeepEqual((await checkEngine(doubling)).offences, []);
  assert.notDeepEqual((await checkEngine(losing())).offences, []);
});
