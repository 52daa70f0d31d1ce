/** The state of a program itself: writes of its database, its disk, its loops. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createLeasedLoop } from '#service-kit/leases/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createTestDatabase, moveDatabaseClock, type TestDatabase } from '#service-kit/testing/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { createWriteCheck } from './database-watch.ts';
import { createDiskWatch } from './disks.ts';
import { createDatabaseWatch, createSystem, judgeSystem, measuredOfSystem } from './index.ts';

/** The check over connections that have the settings of the database as they are now. */
async function checkAnew({ url }: TestDatabase): Promise<{ read: unknown; problem: string | null }> {
  const { pool, db } = createPool(url, 2);
  try {
    const { rows } = await pool.query('select 1 as one');
    return { read: rows[0], problem: await createWriteCheck(() => db)() };
  } finally {
    await db.destroy();
  }
}

const nameOf = async ({ pool }: TestDatabase) =>
  (await pool.query('select current_database() as name')).rows[0].name as string;

test('a read-only database answers reads and fails the check of writes, until it takes them again', async () => {
  await using database = await createTestDatabase('service-kit');
  const name = await nameOf(database);
  assert.deepEqual(await checkAnew(database), { read: { one: 1 }, problem: null });
  await database.pool.query(`alter database ${name} set default_transaction_read_only = on`);
  assert.deepEqual(await checkAnew(database), {
    read: { one: 1 },
    problem: 'takes no writes: it is read-only',
  });
  await database.pool.query(`alter database ${name} reset default_transaction_read_only`);
  assert.equal((await checkAnew(database)).problem, null);
});

test('callers at the same time share one write, and a success serves for a second', async () => {
  await using database = await createTestDatabase('service-kit');
  let asked = 0;
  const check = createWriteCheck(() => {
    asked += 1;
    return database.db;
  });
  await Promise.all(Array.from({ length: 20 }, check));
  assert.equal(asked, 1);
});

/** Samples an hour apart; the newest is the last. */
async function sampled(database: TestDatabase, freeGigabytes: readonly number[], totalGigabytes: number) {
  const gigabyte = 1_000_000_000;
  for (const [place, free] of freeGigabytes.entries()) {
    const watch = createDiskWatch({
      ...{ db: () => database.db, clock: createTestClock(0), reporter: silentReporter, folder: '/data' },
      readDisk: async () => ({ freeBytes: free * gigabyte, totalBytes: totalGigabytes * gigabyte }),
    });
    await moveDatabaseClock(database, `${place} hours`);
    await watch.sample();
  }
  const system = createSystem({
    ...{ db: () => database.db, clock: createTestClock(0), reporter: silentReporter, folder: '/data' },
  });
  const [disk] = judgeSystem(await system.read());
  return { verdict: disk!.verdict, said: measuredOfSystem(disk!.kind, disk!.details) };
}

for (const [title, free, total, verdict, said] of [
  [
    'a disk that loses a tenth an hour',
    [500, 400],
    1000,
    'bad',
    '400 GB free (40.0 %), full in 4 h at the present speed',
  ],
  [
    'a disk that loses little',
    [500, 499],
    1000,
    'good',
    '499 GB free (49.9 %), full in 20 days at the present speed',
  ],
  ['a disk that is almost full and stays so', [50, 50], 1000, 'bad', '50.0 GB free (5.0 %)'],
  ['a disk between the limits', [60, 60], 1000, 'unknown', '60.0 GB free (6.0 %)'],
  ['one sample alone', [300], 1000, 'good', '300 GB free (30.0 %)'],
  ['a disk on which space was freed', [100, 400], 1000, 'good', '400 GB free (40.0 %)'],
  [
    'samples older than six hours are left out',
    [900, 400, 400, 400, 400, 400, 400, 400],
    1000,
    'good',
    '400 GB free (40.0 %)',
  ],
] as const)
  test(`disks: ${title}: ${verdict}, with its bytes and hours`, async () => {
    await using database = await createTestDatabase('service-kit');
    assert.deepEqual(await sampled(database, free, total), { verdict, said });
  });

test('a loop that fails for two minutes is bad until it succeeds; one that is stopped in order is not judged', async () => {
  await using database = await createTestDatabase('service-kit');
  const clock = createTestClock(0);
  let fault: string | null = 'the disk of operations is full';
  const loop = createLeasedLoop({
    ...{ name: 'retention', intervalMs: 3_600_000, ttlSeconds: 60, db: () => database.db, clock },
    reporter: silentReporter,
    async run() {
      if (fault !== null) throw new Error(fault);
    },
  });
  const system = createSystem({
    ...{ db: () => database.db, clock, reporter: silentReporter, folder: '/' },
  });
  const judge = async () =>
    judgeSystem(await system.read()).map(({ verdict, details }) => [verdict, details.error]);
  const judged = (verdict: string) =>
    until(`the loop is ${verdict}`, 20_000, async () => (await judge())[0]?.[0] === verdict);
  await loop.start();
  await judged('unknown');
  await moveDatabaseClock(database, '119 seconds');
  assert.deepEqual(await judge(), [['unknown', fault]]);
  await moveDatabaseClock(database, '125 seconds');
  assert.deepEqual(await judge(), [['bad', fault]]);
  fault = null;
  await clock.advance(3_600_000);
  await judged('good');
  await moveDatabaseClock(database, '3 hours');
  assert.deepEqual(await judge(), [['bad', null]], 'it has not run when it should');
  await loop.stop();
  assert.deepEqual(await judge(), []);
});

test('a database that takes no writes for a minute is mailed once, and its recovery, to those it knew before', async () => {
  const clock = createTestClock(0);
  const mails: string[] = [];
  let problem: string | null = null;
  const watch = createDatabaseWatch({
    checkWrites: async () => problem,
    listRecipients: async () => {
      assert.equal(problem, null, 'the database is asked only while it answers');
      return ['night@example.net', 'day@example.net'];
    },
    post: {
      async send({ to, subject, text }) {
        mails.push(`${to}: ${subject}: ${text.trim()}`);
        return null;
      },
    },
    ...{ clock, reporter: silentReporter, program: 'monitor' },
  });
  /** Lets this much time pass, in looks of 15 s. */
  const pass = async (seconds: number) => {
    for (let at = 0; at < seconds; at += 15) {
      await until('the watch waits', 20_000, () => clock.waiting() > 0);
      await clock.advance(15_000);
    }
    await until('the watch waits', 20_000, () => clock.waiting() > 0);
  };
  await watch.start();
  await pass(15);
  problem = 'takes no writes: no space left on its disk';
  await pass(60);
  assert.deepEqual(mails, [], 'a restart of the database takes less than a minute');
  await pass(60);
  const down =
    'monitor: the database takes no writes: The database of monitor takes no writes: no space left on its disk.';
  assert.deepEqual(mails.splice(0), [`night@example.net: ${down}`, `day@example.net: ${down}`]);
  problem = null;
  await pass(30);
  assert.equal(mails.length, 2);
  assert.match(mails[0]!, /^night@example\.net: monitor: the database takes writes again/);
  await watch.stop();
});
