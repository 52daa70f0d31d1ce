// Slow: compares random questions with plain memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import type { MonitorWorld } from '#monitor/testing/index.ts';
import { createStandingWorld, postgresUnderTest, standingSecond } from '../testing/engines.ts';
import { createMemoryFacts } from '../testing/memory/memory-facts.ts';
import { randomExploration } from '../testing/random-exploration.ts';
import { randomUpload, seededBelow } from '../testing/random-uploads.ts';

/** Makes minutes and ten minutes of what has arrived, and no hour. */
async function rollUpToTens(world: MonitorWorld, rollUp: (hours: 'none' | 'settled') => Promise<void>) {
  await rollUp('none');
  await world.rows(`update unjudged_minutes set marked_at = svc_now() - interval '1 hour'`);
  await world.rows('update rolled_hours set marked_at = svc_now(), rolled_at = svc_now()');
  await rollUp('settled');
}

const countTens = async (world: MonitorWorld) =>
  (
    await world.rows<{ count: number }>(
      'select (select count(*) from usage_tens) + (select count(*) from pair_tens) as count',
    )
  )[0]!.count;

test('usage and connections of an hour that is not summed yet are those of its facts', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const firstHour = Math.floor(standingSecond / 3600) * 3600 - 4 * 3600;
  const random = seededBelow(Number(process.env.SVC_TEST_SEED ?? 9));
  const minutes = Array.from({ length: 60 }, (_, i) => firstHour + (i % 3) * 3600 + i * 60);
  const sensorIds = store.origins.map((one) => one.sensorId);
  const { siteId } = store.origins[0]!;
  const grains = new Map<string, number>();
  for (const stage of ['first', 'late', 'summed']) {
    const uploads = Array.from({ length: stage === 'late' ? 10 : 40 }, () =>
      randomUpload(random, {
        origins: store.origins,
        minutes: stage === 'late' ? minutes.slice(0, 9) : minutes,
      }),
    );
    if (stage !== 'summed') {
      await store.append(uploads);
      await model.append(uploads);
      await rollUpToTens(world, (hours) => store.facts.rollUp(hours));
      assert.ok((await countTens(world)) > 0, `${stage}: kept until the hours are summed`);
    } else {
      await store.facts.rollUp('all');
      assert.equal(await countTens(world), 0, 'of a summed hour none is kept');
    }
    for (let i = 0; i < 150; i += 1) {
      const range = {
        siteId,
        fromMinute: firstHour + 60 * random(60),
        toMinute: firstHour + 4 * 3600 - 60 * random(60),
      };
      const drawn = randomExploration(random, range, sensorIds);
      const asked = {
        ...drawn,
        source: drawn.source === 'addresses' ? ('applications' as const) : drawn.source,
        stepSeconds: [null, 600, 3600][random(3)]!,
      };
      const told = await store.facts.explore(asked);
      const expected = await model.explore(asked);
      assert.deepEqual({ ...told, grains: null }, { ...expected, grains: null }, JSON.stringify(asked));
      const key = `${stage} ${asked.source} ${told.grains.includes('tens') && told.total.inBytes > 0 ? 'of tens' : ''}`;
      grains.set(key, (grains.get(key) ?? 0) + 1);
    }
  }
  for (const key of ['first applications of tens', 'late pairs of tens', 'summed pairs '])
    assert.ok((grains.get(key) ?? 0) > 10, `${key}: ${JSON.stringify([...grains])}`);
});
