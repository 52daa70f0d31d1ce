// Slow: crashes between all steps of an append, and again with planted faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { checkCrashPoints } from './testing/crash-points.ts';
import {
  createStandingWorld,
  doubling,
  losing,
  type Plant,
  postgresUnderTest,
  standingSecond,
} from './testing/engines.ts';
import { createMemoryFacts } from './testing/memory/memory-facts.ts';

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
