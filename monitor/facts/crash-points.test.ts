// Slow: crashes between all steps of an append.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { checkCrashPoints } from './testing/crash-points.ts';
import { createStandingWorld, postgresUnderTest, standingSecond } from './testing/engines.ts';
import { createMemoryFacts } from './testing/memory/memory-facts.ts';

test('NET-7.1: an append that crashes after any of its steps and is repeated adds once; PostgreSQL', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const seed = Number(process.env.SVC_TEST_SEED ?? 7);
  const { offences, steps } = await checkCrashPoints(store, {
    ...{ model, seed, questions: 1, nowSecond: standingSecond, compareEvery: 4 },
  });
  assert.deepEqual(offences, []);
  assert.ok(steps >= 10, `${steps} steps`);
});
