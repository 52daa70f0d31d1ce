import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { Placement } from '#monitor/placements/index.ts';
import { captureMinute, createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { createCrashingDatabase } from '#service-kit/testing/crash-injection.ts';
import type { FactUpload } from './contract/facts.ts';
import { createFactStore, type FactStore, openScope } from './index.ts';
import { createMemoryFacts } from './memory/memory-facts.ts';
import { checkConformance, type StoreUnderTest } from './testing/conformance.ts';
import { checkCrashPoints } from './testing/crash-points.ts';
import { randomExploration } from './testing/random-exploration.ts';
import {
  type Random,
  randomToken,
  randomUpload,
  sampleAddresses,
  seededRandom,
} from './testing/random-uploads.ts';

const nodes = ['node-1', 'node-2', 'node-3'];

/** Servers with some of the addresses, which move between the nodes of the sensors and one without a sensor. */
async function createMoves(world: MonitorWorld, nowSecond: number) {
  const placed = sampleAddresses.slice(0, 4);
  let book = new Map<string, (Placement & { isOpen: boolean })[]>();
  const read = async () => {
    const rows = await world.rows<Placement & { isOpen: boolean; key: string }>(
      `select s.id || ' ' || a.address as key, extract(epoch from p.began_at)::float8 as "beganAt",
        extract(epoch from p.ended_at)::float8 as "endedAt", p.speaks, p.is_open as "isOpen"
      from sensors s cross join unnest($1::text[]) a(address) cross join lateral address_placements(s.id, a.address::inet) p`,
      [placed],
    );
    book = Map.groupBy(rows, (row) => row.key);
  };
  const insert = (address: string, node: string, beganAt: number) =>
    world.rows(
      `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
      values (7, $1, $2, '02:00:00:00:00:01', 'br0', $3, $5, to_timestamp($4::float8))`,
      [placed.indexOf(address), node, address, beganAt, !address.startsWith('10.')],
    );
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  // Older than what is judged again, and certain up to an hour ago.
  for (const [i, address] of placed.entries()) await insert(address, nodes[i % 3]!, Number.NEGATIVE_INFINITY);
  const listedAt = nowSecond - 600;
  await world.rows('update inventory_state set listed_at = to_timestamp($1::float8)', [listedAt]);
  await read();
  const move = async (random: Random) => {
    const address = placed[random(placed.length)]!;
    const since = nowSecond - random(20 * 3600);
    await world.rows(
      `update vm_placements set ended_at = greatest(began_at, to_timestamp($2::float8)) where address = $1 and ended_at is null`,
      [address, since + random(600)],
    );
    await insert(address, nodes[random(3)]!, since);
    await world.database.db
      .transaction()
      .execute((trx) => world.facts.rejudge([{ address, since }], openScope(trx)));
    await read();
  };
  const placementsOf = (sensorId: number, address: string) => book.get(`${sensorId} ${address}`) ?? [];
  return { move, book: { placementsOf, certainUntil: () => listedAt } };
}

/** PostgreSQL with two sensors at one site. */
async function postgresUnderTest(
  world: MonitorWorld,
  plant: Plant = (facts) => facts,
): Promise<StoreUnderTest> {
  const { facts, siteId } = world;
  const second = await world.enrol('node-2');
  // Every roll-up by a process that knows nothing of those before it.
  const rollUp: FactStore['rollUp'] = (hours, mayGoOn) =>
    createFactStore({ db: () => world.database.db, nameApplication }).rollUp(hours, mayGoOn);
  return {
    facts: { ...facts, rollUp },
    origins: [world.sensor.id, second.id].map((sensorId) => ({ siteId, sensorId })),
    async append(uploads, statements = Number.POSITIVE_INFINITY) {
      await using process = createCrashingDatabase(world.database.url, { statements, from: /^begin/ });
      const own = plant(createFactStore({ db: () => process.db, nameApplication }));
      try {
        await own.prepare(minutesOf(uploads));
        await process.db.transaction().execute((trx) => own.append(uploads, openScope(trx)));
      } catch (error) {
        if (!process.hasCrashed) throw error;
      }
      return !process.hasCrashed;
    },
  };
}

/** Memory with two sensors; it stores each upload by itself and knows no transaction. */
function memoryUnderTest(nowSecond: number, plant: Plant = (facts) => facts): StoreUnderTest {
  const facts = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const planted = plant(facts);
  const scope = openScope(undefined as never);
  return {
    facts,
    origins: [1, 2].map((sensorId) => ({ siteId: 1, sensorId })),
    async append(uploads, stepsMax = Number.POSITIVE_INFINITY) {
      const steps = [
        () => planted.prepare(minutesOf(uploads)),
        ...uploads.map((upload) => () => planted.append([upload], scope)),
      ];
      for (const step of steps.slice(0, stepsMax)) await step();
      return stepsMax > steps.length;
    },
  };
}

const minutesOf = (uploads: readonly FactUpload[]) =>
  uploads.flatMap(({ minutes }) => minutes.map(({ minute }) => minute));

/** A fault put into a store, to show that the suite sees it. */
type Plant = (facts: FactStore) => FactStore;

/** Every append counts as a new one. */
const doubling: Plant = (facts) => ({
  ...facts,
  append: (uploads, scope) =>
    facts.append(
      uploads.map((upload) => ({ ...upload, token: { spoolId: randomUUID(), sequence: 1 } })),
      scope,
    ),
});

/** Tokens are noted before and apart from their rows, so a repeat is taken for done. */
function losing(): Plant {
  const noted = new Set<string>();
  return (facts) => ({
    ...facts,
    async append(uploads, scope) {
      const fresh = uploads.filter(({ token }) => !noted.has(token.spoolId));
      for (const { token } of fresh) noted.add(token.spoolId);
      // What crashes here has its tokens and not its rows.
      if (fresh.length > 0 && noted.size % 3 !== 0) await facts.append(fresh, scope);
    },
  });
}

test('NET-2.2.5, NET-2.2.9, NET-2.2.10: PostgreSQL answers like the rules in plain memory, rolled up or not', async () => {
  await using world = await createMonitorWorld();
  const nowSecond = Math.floor(Date.now() / 1000);
  const store = await postgresUnderTest(world);
  const { move, book } = await createMoves(world, nowSecond);
  store.move = move;
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond, book });
  const options = {
    model,
    seed: Number(process.env.SVC_TEST_SEED ?? 3),
    uploads: 25,
    questions: 4,
    nowSecond,
  };
  assert.deepEqual(await checkConformance(store, options), []);
});

test('NET-2.4.2: PostgreSQL trims gaps of unobserved minutes like the rules in plain memory', async () => {
  await using world = await createMonitorWorld();
  const nowSecond = Math.floor(Date.now() / 1000);
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const first = Math.floor(nowSecond / 60) * 60 - 3600;
  const random = seededRandom(Number(process.env.SVC_TEST_SEED ?? 5));
  const captures = ['uplink0', 'br0'];
  const reasons = ['sensor_down', 'capture_failed', 'storage_full', 'refused', 'clock_step'] as const;
  const upload = (): FactUpload => {
    const minutes = captures
      .filter(() => random(2) === 0)
      .map((capture) => ({
        ...captureMinute({ minute: first + 60 * random(20) }),
        capture,
        observedMs: random(4) === 0 ? 59_000 : 60_000,
      }));
    const from = random(20);
    const gap = {
      fromMinute: first + 60 * from,
      toMinute: first + 60 * (from + random(6)),
      capture: ['', ...captures][random(3)]!,
      reason: reasons[random(reasons.length)]!,
    };
    const token = randomToken(random);
    return { origin: store.origins[random(2)]!, token, minutes, gaps: random(3) === 0 ? [gap] : [] };
  };
  const gapsOf = async (facts: Pick<FactStore, 'listGaps'>) => {
    const gaps = await facts.listGaps(
      { siteId: world.siteId, fromMinute: first, toMinute: first + 3600 },
      1000,
    );
    return gaps.map(({ sensorId, capture, fromMinute, toMinute, reason }) =>
      [sensorId, capture, fromMinute, toMinute, reason].join(' '),
    );
  };
  const trimmed = { sent: 0, left: 0 };
  for (let batch = 0; batch < 60; batch += 1) {
    const uploads = Array.from({ length: 1 + random(3) }, upload);
    trimmed.sent += uploads.reduce((sum, { gaps }) => sum + gaps.length, 0);
    await store.append(uploads);
    await model.append(uploads);
    const expected = await gapsOf(model);
    assert.deepEqual((await gapsOf(store.facts)).sort(), expected.sort(), `after batch ${batch}`);
    trimmed.left = expected.length;
  }
  assert.notEqual(trimmed.left, trimmed.sent, 'some gaps were trimmed');
});

for (const [engine, stepsMin] of [
  ['PostgreSQL', 10],
  ['memory', 4],
] as const) {
  const checkEngine = async (plant?: Plant) => {
    await using world = await createMonitorWorld();
    const nowSecond = Math.floor(Date.now() / 1000);
    const store =
      engine === 'memory' ? memoryUnderTest(nowSecond, plant) : await postgresUnderTest(world, plant);
    const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
    const seed = Number(process.env.SVC_TEST_SEED ?? 7);
    return await checkCrashPoints(store, { model, seed, questions: 1, nowSecond });
  };

  test(`NET-7.1: an append that crashes after any of its steps and is repeated adds once; ${engine}`, async () => {
    const { offences, steps } = await checkEngine();
    assert.deepEqual(offences, []);
    assert.ok(steps >= stepsMin, `${steps} steps`);
  });

  test(`the crash points show an append that counts twice, and one that is lost; ${engine}`, async () => {
    assert.notDeepEqual((await checkEngine(doubling)).offences, []);
    assert.notDeepEqual((await checkEngine(losing())).offences, []);
  });
}

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

test('explore: rows that hours rank have the sums and steps of one read', async () => {
  await using world = await createMonitorWorld();
  const store = await postgresUnderTest(world);
  const firstHour = Math.floor(Date.now() / 3_600_000) * 3600 - 5 * 3600;
  const random = seededRandom(2);
  const minutes = Array.from({ length: 30 }, (_, i) => firstHour + i * 10 * 60);
  await store.append(
    Array.from({ length: 40 }, () => randomUpload(random, { origins: store.origins, minutes })),
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
  while (compared < 150) {
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
    compared += 1;
  }
  assert.deepEqual([...grains].sort(), ['hours', 'minutes', 'tens']);
});
