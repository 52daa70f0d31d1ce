import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import type { Exploration } from './index.ts';
import {
  comparePostgres,
  createStandingWorld,
  postgresUnderTest,
  standingSecond,
} from './testing/engines.ts';
import { compareViews } from './testing/explore-together.ts';
import { checkGaps } from './testing/gaps.ts';
import { createMemoryFacts } from './testing/memory/memory-facts.ts';
import { checkQuietSteps } from './testing/quiet-steps.ts';
import { randomExploration, randomView } from './testing/random-exploration.ts';
import { randomUpload, sampleAddresses, seededBelow } from './testing/random-uploads.ts';
import { checkDelivered, checkFirstCapture, checkSegments } from './testing/who-counts.ts';

test('NET-2.2.5, NET-2.2.9, NET-2.2.10: PostgreSQL answers like the rules in plain memory, rolled up or not', async () => {
  assert.deepEqual(await comparePostgres({ uploads: 12, questions: 2 }), []);
});

test('NET-2.4.2: PostgreSQL trims gaps of unobserved minutes like the rules in plain memory', async () => {
  await using world = await createStandingWorld();
  await checkGaps(await postgresUnderTest(world), standingSecond);
});

test('NET-2.2.10: PostgreSQL explores no steps in which no address had traffic, though captures listened', async () => {
  await using world = await createStandingWorld();
  await checkQuietSteps(await postgresUnderTest(world), standingSecond);
});

for (const [what, check] of [
  ['of captures that saw the same bytes the first by sensor and name', checkFirstCapture],
  ['of an address in several segments the strongest capture of each', checkSegments],
  [
    'what was delivered, and apart from it what filters dropped, before or behind the capture',
    checkDelivered,
  ],
] as const)
  test(`NET-2.2.5, NET-2.2.10: PostgreSQL counts ${what}`, async () => {
    await using world = await createStandingWorld();
    await check(await postgresUnderTest(world), standingSecond);
  });

test('NET-8.8: a process that finds minutes judged by another one makes the room for what it makes of them', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const minute = standingSecond - 26 * 3600;
  const origin = store.origins[0]!;
  const random = seededBelow(1);
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
  for (const table of ['name_tens', 'address_tens', 'name_days', 'name_day_locals']) {
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

test('explore: own scans are the same part of the total, whether hours, ten minutes or minutes are read', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const firstHour = Math.floor(standingSecond / 3600) * 3600 - 5 * 3600;
  const random = seededBelow(4);
  const minutes = Array.from({ length: 30 }, (_, i) => firstHour + i * 10 * 60);
  const uploads = Array.from({ length: 20 }, () => randomUpload(random, { origins: store.origins, minutes }));
  await store.append(uploads);
  await model.append(uploads);
  await store.facts.rollUp('all');
  const [, address] = sampleAddresses;
  const grains = new Set<string>();
  const { siteId } = store.origins[0]!;
  for (const stepSeconds of [null, 60, 600, 3600])
    for (const by of [[], ['address'], ['sensor']] as const)
      for (const filters of [[], [{ dimension: 'address' as const, is: false, values: [address!] }]])
        for (const measure of ['bytes', 'packets'] as const) {
          const asked: Exploration = {
            ...{ siteId, fromMinute: firstHour, toMinute: firstHour + 5 * 3600, source: 'addresses' },
            ...{ filters, owners: [], networks: [], measure, by, stepSeconds },
            ...{ order: 'size', rows: { limit: 3 } },
          };
          const [found, expected] = [await store.facts.explore(asked), await model.explore(asked)];
          assert.deepEqual(
            [found.ownScans, found.total],
            [expected.ownScans, expected.total],
            JSON.stringify(asked),
          );
          assert.ok(found.ownScans! > 0);
          for (const grain of found.grains) grains.add(grain);
        }
  assert.deepEqual([...grains].sort(), ['hours', 'minutes', 'tens']);
});

test('explore: rows that hours rank have the sums and steps of one read, alone and beside other views', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const firstHour = Math.floor(standingSecond / 3600) * 3600 - 5 * 3600;
  const random = seededBelow(2);
  const minutes = Array.from({ length: 30 }, (_, i) => firstHour + i * 10 * 60);
  await store.append(
    Array.from({ length: 20 }, () => randomUpload(random, { origins: store.origins, minutes })),
  );
  await store.facts.rollUp('all');
  const { siteId } = store.origins[0]!;
  const range = { siteId, fromMinute: firstHour, toMinute: firstHour + 5 * 3600 };
  const allOwned = sampleAddresses.map((address, i) => ({
    address,
    segment: '',
    server: `server ${i}`,
    customer: `customer ${i % 2}`,
  }));
  const grains = new Set<string>();
  let compared = 0;
  while (compared < 24) {
    const drawn = randomExploration(
      random,
      range,
      store.origins.map((one) => one.sensorId),
    );
    if (drawn.by.length === 0) continue;
    const asked = {
      ...drawn,
      owners: compared % 3 === 0 ? drawn.owners : allOwned,
      stepSeconds: compared % 2 === 0 ? 600 : 60,
      rows: { limit: 1 + (compared % 5) },
    };
    const ranked = await store.facts.explore(asked);
    const read = await store.facts.explore({ ...asked, rows: { keys: ranked.rows.map((one) => one.key) } });
    const shown = JSON.stringify(asked);
    assert.deepEqual({ ...ranked, grains: null }, { ...read, grains: null }, shown);
    for (const grain of ranked.grains) grains.add(grain);
    const others = [1, 2, 3].map(() => ({
      ...randomView(random, asked.source),
      stepSeconds: asked.stepSeconds,
    }));
    const { by, stepSeconds, order, rows, ...reading } = asked;
    const views = [{ by, stepSeconds, order, rows }, ...others];
    assert.deepEqual(await compareViews(store.facts, reading, views), []);
    compared += 1;
  }
  assert.deepEqual([...grains].sort(), ['hours', 'minutes', 'tens']);
});
