import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createTestDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { createJobRunner, enqueueJob, finishJob, type Job, type JobHandler } from './index.ts';
import { claimJob } from './store.ts';

function runner(db: Parameters<typeof claimJob>[0], handlers: Record<string, JobHandler>) {
  return createJobRunner({ db: () => db, handlers, clock: systemClock, reporter: silentReporter });
}

test('a job whose transaction rolled back was never there', async () => {
  await using database = await createTestDatabase('service-kit');
  await assert.rejects(
    database.db.transaction().execute(async (trx) => {
      await enqueueJob(trx, 'provision', { server: 1 });
      throw new Error('no');
    }),
  );
  const ran: Job[] = [];
  await runner(database.db, { provision: { run: async (job) => void ran.push(job) } }).drain();
  assert.equal(ran.length, 0);
});

test('many workers run each job once', async () => {
  await using database = await createTestDatabase('service-kit');
  for (let i = 0; i < 50; i += 1) await enqueueJob(database.db, 'provision', { server: i });
  const ran: unknown[] = [];
  const handlers = {
    provision: { run: async (job: Job) => void ran.push((job.payload as { server: number }).server) },
  };
  await Promise.all(Array.from({ length: 4 }, () => runner(database.db, handlers).drain()));
  assert.deepEqual(
    ran.map(Number).sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, i) => i),
  );
});

test('a dead worker frees its job after its claim, and can not finish it any more', async () => {
  await using database = await createTestDatabase('service-kit');
  await enqueueJob(database.db, 'provision', {});
  const dead = (await claimJob(database.db, ['provision'], 60))!;
  assert.equal(await claimJob(database.db, ['provision'], 60), null);
  await moveDatabaseClock(database, '61 seconds');
  const next = (await claimJob(database.db, ['provision'], 60))!;
  assert.equal(next.id, dead.id);
  assert.equal(next.attempts, 2);
  assert.equal(await finishJob(database.db, dead), false);
  assert.equal(await finishJob(database.db, next), true);
});

test('no other worker begins a job while one runs it, however long it takes', async () => {
  await using database = await createTestDatabase('service-kit');
  const { db } = database;
  await enqueueJob(db, 'provision', {});
  const clock = createTestClock(0);
  const answered = Promise.withResolvers<void>();
  const provision = { run: () => answered.promise };
  const options = { db: () => db, handlers: { provision }, reporter: silentReporter };
  const work = createJobRunner({ ...options, clock, claimSeconds: 30 }).drain();
  for (let seconds = 10; seconds <= 60; seconds += 10) {
    await until('the worker waits to renew it', 30_000, () => clock.waiting() === 1);
    await moveDatabaseClock(database, `${seconds} seconds`);
    await clock.advance(10_000);
  }
  await until('the worker waits to renew it', 30_000, () => clock.waiting() === 1);
  assert.equal(await claimJob(db, ['provision'], 30), null);
  answered.resolve();
  await work;
  await moveDatabaseClock(database, '1 hour');
  assert.equal(await claimJob(db, ['provision'], 30), null);
});

test('a job that keeps failing is given up after its attempts, once', async () => {
  await using database = await createTestDatabase('service-kit');
  await enqueueJob(database.db, 'provision', {});
  const given: string[] = [];
  const handlers: Record<string, JobHandler> = {
    provision: {
      attemptsMax: 3,
      run: async () => {
        throw new Error('the node is on fire');
      },
      giveUp: async (_job, error) => void given.push(error),
    },
  };
  for (let hour = 1; hour <= 5; hour += 1) {
    await runner(database.db, handlers).drain();
    await moveDatabaseClock(database, `${hour} hours`);
  }
  assert.deepEqual(given, ['the node is on fire']);
});
