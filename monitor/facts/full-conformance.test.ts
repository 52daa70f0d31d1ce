// Slow: asks PostgreSQL and plain memory the same in four stages of uploads, and crashes between all steps of an append.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMemoryFacts } from './memory/memory-facts.ts';
import { checkCrashPoints } from './testing/crash-points.ts';
import {
  comparePostgres,
  createStandingWorld,
  doubling,
  losing,
  type Plant,
  postgresUnderTest,
  standingSecond,
} from './testing/engines.ts';

test('NET-2.2.5, NET-2.2.9, NET-2.2.10: PostgreSQL answers like the rules in plain memory, of many uploads', async () => {
  assert.deepEqual(await comparePostgres({ uploads: 25, questions: 4 }), []);
});

async function crashPostgres(plant?: Plant) {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world, plant);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const seed = Number(process.env.SVC_TEST_SEED ?? 7);
  return await checkCrashPoints(store, {
    ...{ model, seed, questions: 1, nowSecond: standingSecond, compareEvery: 4 },
  });
}

test('NET-7.1: an append that crashes after any of its steps and is repeated adds once; PostgreSQL', async () => {
  const { offences, steps } = await crashPostgres();
  assert.deepEqual(offences, []);
  assert.ok(steps >= 10, `${steps} steps`);
});

test('the crash points show an append that counts twice, and one that is lost; PostgreSQL', async () => {
  assert.notDeepEqual((await crashPostgres(doubling)).offences, []);
  assert.notDeepEqual((await crashPostgres(losing())).offences, []);
});
