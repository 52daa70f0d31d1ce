import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, host, usageRow } from '#monitor/testing/index.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';
import type { Exploration } from '../contract/exploration.ts';
import { createFactStore } from '../index.ts';
import { createStandingWorld, postgresUnderTest, standingSecond } from '../testing/engines.ts';
import { createMemoryFacts } from '../testing/memory/memory-facts.ts';
import { randomRemainder } from '../testing/random-exploration.ts';
import { randomToken, randomUpload, seededBelow } from '../testing/random-uploads.ts';

test('sums without some addresses are those of the facts of others, also where these had no byte', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const statements: string[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(world.database.pool) }),
    log: ({ query: { sql } }: LogEvent) => void statements.push(sql),
  });
  const facts = createFactStore({ db: () => db as typeof world.database.db, nameApplication });
  const firstHour = Math.floor(standingSecond / 3600) * 3600 - 4 * 3600;
  const random = seededBelow(Number(process.env.SVC_TEST_SEED ?? 5));
  const minutes = Array.from({ length: 72 }, (_, i) => firstHour + i * 3 * 60);
  const { siteId } = store.origins[0]!;
  const counts = { taken: 0, again: 0, direct: 0 };
  for (const stage of ['rolled up', 'with late facts']) {
    const uploads = Array.from({ length: 24 }, () =>
      randomUpload(random, { origins: [store.origins[0]!], minutes }),
    );
    await store.append(uploads);
    await model.append(uploads);
    await store.facts.rollUp(stage === 'rolled up' ? 'all' : 'settled');
    for (let i = 0; i < 50; i += 1) {
      const range = {
        siteId,
        fromMinute: firstHour + 60 * random(60),
        toMinute: firstHour + 4 * 3600 - 60 * random(60),
      };
      const asked = randomRemainder(random, range, [1, 2]);
      statements.length = 0;
      const told = await facts.explore(asked);
      const expected = await model.explore(asked);
      assert.deepEqual({ ...told, grains: null }, { ...expected, grains: null }, JSON.stringify(asked));
      const sums = statements.filter((text) => text.includes('by_raw as materialized'));
      const isTaken = sums.some((text) => text.includes('part as materialized'));
      const isRead = sums.some((text) => !text.includes('part as materialized'));
      counts[isTaken && isRead ? 'again' : isTaken ? 'taken' : 'direct'] += 1;
    }
  }
  assert.ok(Math.min(counts.taken, counts.again, counts.direct) > 3, JSON.stringify(counts));
});

test('a name that others used without a byte stays, and one that no other used goes', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const hour = Math.floor(standingSecond / 3600) * 3600 - 3 * 3600;
  const [one, other] = ['192.0.2.10', '192.0.2.11'];
  const usage = (client: string, name: string, serverBytes: number) =>
    usageRow({ client, name, serverBytes, clientBytes: 0 });
  const minutes = [600, 1260].map((after) =>
    captureMinute({
      minute: hour + after,
      hosts: [host(one, 900, 0), host(other, 0, 0)],
      usage: [
        usage(one, 'both.example', 500),
        usage(one, 'own.example', 400),
        usage(other, 'both.example', 0),
      ],
    }),
  );
  const upload = { origin: store.origins[0]!, token: randomToken(seededBelow(1)), minutes, gaps: [] };
  await store.append([upload]);
  await model.append([upload]);
  await store.facts.rollUp('all');
  const { siteId } = store.origins[0]!;
  for (const by of [['application'], ['port'], []] as const)
    for (const stepSeconds of [60, 600, 3600, null])
      for (const [toMinute, excluded] of [
        [hour + 3600, [one]],
        [hour + 1320, [one]],
        [hour + 3600, [one, other]],
      ] as const) {
        const asked: Exploration = {
          ...{ siteId, fromMinute: hour, toMinute, owners: [], networks: [] },
          source: 'applications',
          filters: [{ dimension: 'address', is: false, values: excluded }],
          ...{ by, stepSeconds, measure: 'bytes', order: 'size', rows: { limit: 5 } },
        };
        const told = await store.facts.explore(asked);
        const expected = await model.explore(asked);
        const question = JSON.stringify(asked);
        assert.deepEqual({ ...told, grains: null }, { ...expected, grains: null }, question);
        assert.equal(told.groups, by.length === 0 || excluded.length === 2 ? 0 : 1, question);
      }
});
