import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createStandingWorld, postgresUnderTest, standingSecond } from '../testing/engines.ts';
import { createMemoryFacts } from '../testing/memory/memory-facts.ts';
import { randomExploration } from '../testing/random-exploration.ts';
import { randomUpload, seededBelow } from '../testing/random-uploads.ts';

test('usage that a sensor counted is that of its facts, of hours that it has alone and of those that it shares', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const firstHour = Math.floor(standingSecond / 3600) * 3600 - 6 * 3600;
  const random = seededBelow(Number(process.env.SVC_TEST_SEED ?? 6));
  // Hours with one minute, in which an address mostly counts at one sensor, and hours with many.
  const minutes = Array.from({ length: 60 }, (_, i) => firstHour + (i % 6) * 3600 + (i % 2) * 60 * i);
  const sensorIds = store.origins.map((one) => one.sensorId);
  const { siteId } = store.origins[0]!;
  const grains = new Set<string>();
  let known = 0;
  for (const hours of ['all', 'settled'] as const) {
    const uploads = Array.from({ length: 50 }, () =>
      randomUpload(random, { origins: store.origins, minutes }),
    );
    await store.append(uploads);
    await model.append(uploads);
    await store.facts.rollUp(hours);
    for (let i = 0; i < 150; i += 1) {
      const range = {
        siteId,
        fromMinute: firstHour + 60 * random(60),
        toMinute: firstHour + 6 * 3600 - 60 * random(60),
      };
      const drawn = randomExploration(random, range, sensorIds);
      const asked = {
        ...drawn,
        source: 'applications' as const,
        by: drawn.by.filter((one) => !['sensor', 'scope', 'peer', 'country', 'as'].includes(one)),
        rows: { limit: 1 + random(6) },
        stepSeconds: [null, 3600, 7200][random(3)]!,
        filters: [
          ...drawn.filters.filter(
            (one) => random(3) === 0 && !['sensor', 'scope', 'peer'].includes(one.dimension),
          ),
          { dimension: 'sensor' as const, is: true, values: [String(sensorIds[random(sensorIds.length)])] },
        ],
      };
      const told = await store.facts.explore(asked);
      const expected = await model.explore(asked);
      assert.deepEqual({ ...told, grains: null }, { ...expected, grains: null }, JSON.stringify(asked));
      if (told.total.inBytes > 0) known += 1;
      for (const grain of told.grains) grains.add(grain);
    }
  }
  assert.ok(known > 100, `${known} with traffic`);
  assert.deepEqual([...grains].sort(), ['hours', 'minutes']);
});
