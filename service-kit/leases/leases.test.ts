import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createTestDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';
import { createLeasedLoop, holdsTerm, isTrusted, renewLease, resignLease, takeLease } from './index.ts';
import * as store from './store.ts';

test('one holder at a time; an expired lease passes on with a higher term, and the old term is refused', async () => {
  await using database = await createTestDatabase('service-kit');
  const { db } = database;
  assert.equal(await store.takeLease(db, 'feed', 'a', 30), 1);
  assert.equal(await store.takeLease(db, 'feed', 'a', 30), 1, 'a renewal keeps the term');
  assert.equal(await store.takeLease(db, 'feed', 'b', 30), null);
  assert.ok(await holdsTerm(db, 'feed', 1));
  await moveDatabaseClock(database, '31 seconds');
  assert.ok(!(await holdsTerm(db, 'feed', 1)), 'an expired term has no holder');
  assert.equal(await store.takeLease(db, 'feed', 'b', 30), 2);
  assert.ok(!(await holdsTerm(db, 'feed', 1)));
  assert.equal(await store.takeLease(db, 'feed', 'a', 30), null);
});

test('a holder that comes back after its own lease ran out gets a new term', async () => {
  await using database = await createTestDatabase('service-kit');
  assert.equal(await store.takeLease(database.db, 'feed', 'a', 30), 1);
  await moveDatabaseClock(database, '31 seconds');
  assert.equal(await store.takeLease(database.db, 'feed', 'a', 30), 2);
});

test('of many that ask at once exactly one gets the lease', async () => {
  await using database = await createTestDatabase('service-kit');
  const terms = await Promise.all(
    Array.from({ length: 20 }, (_, i) => store.takeLease(database.db, 'feed', `h${i}`, 30)),
  );
  assert.equal(terms.filter((term) => term !== null).length, 1);
});

test('a released lease is free at once', async () => {
  await using database = await createTestDatabase('service-kit');
  await store.takeLease(database.db, 'feed', 'a', 30);
  await store.releaseTerm(database.db, { name: 'feed', holder: 'a', term: 1 });
  assert.equal(await store.takeLease(database.db, 'feed', 'b', 30), 2);
});

test('renewing and resigning concern one term: a follower, or the same holder later, is never touched by an old one', async () => {
  await using database = await createTestDatabase('service-kit');
  const deps = { db: () => database.db, clock: createTestClock(0), ttlSeconds: 30 };
  const old = (await takeLease(deps, 'feed', 'a'))!;
  assert.ok(await renewLease(deps, old));
  await moveDatabaseClock(database, '31 seconds');
  assert.equal(await renewLease(deps, old), false, 'what ran out is not renewed');
  const follower = (await takeLease(deps, 'feed', 'b'))!;
  assert.equal(await renewLease(deps, old), false);
  await resignLease(deps, old);
  assert.ok(await holdsTerm(database.db, 'feed', follower.term), 'the follower keeps its term');
  await resignLease(deps, follower);
  const again = (await takeLease(deps, 'feed', 'a'))!;
  await resignLease(deps, { ...again, term: old.term });
  assert.ok(await holdsTerm(database.db, 'feed', again.term), 'the same holder keeps its later term');
});

test('a slow answer does not stretch the time for which a holder trusts its lease', async () => {
  await using database = await createTestDatabase('service-kit');
  const clock = createTestClock(0);
  const deps = { db: () => database.db, clock, ttlSeconds: 30 };
  const lease = (await takeLease(deps, 'feed', 'a'))!;
  await clock.advance(26_000);
  assert.ok(isTrusted(deps, lease));
  await clock.advance(1_000);
  assert.ok(!isTrusted(deps, lease), 'a margin before it runs out');
  const asked = renewLease(deps, lease);
  await clock.advance(10_000);
  assert.equal(await asked, true);
  await clock.advance(16_999);
  assert.ok(isTrusted(deps, lease));
  await clock.advance(1);
  assert.ok(!isTrusted(deps, lease), 'counted from the asking');
  const late = renewLease(deps, lease);
  await clock.advance(27_000);
  assert.equal(await late, false, 'an answer that comes after the trust is none');
});

test('a loop that fails goes on, and a second replica does not run beside it', async () => {
  await using database = await createTestDatabase('service-kit');
  const clock = createTestClock(0);
  let runs = 0;
  const options = {
    name: 'feed',
    intervalMs: 1_000,
    ttlSeconds: 30,
    db: () => database.db,
    clock,
    reporter: silentReporter,
  };
  const first = createLeasedLoop({
    ...options,
    run: async () => {
      runs += 1;
      if (runs === 1) throw new Error('once');
    },
  });
  const second = createLeasedLoop({ ...options, run: async () => assert.fail('the lease is held') });
  await assert.rejects(first.runOnce(), /once/);
  assert.equal(await first.runOnce(), true);
  assert.equal(await second.runOnce(), false);
  assert.equal(runs, 2);
});

test('a woken loop runs at once, also for what changed during a run, and a few times a second at most', async () => {
  await using database = await createTestDatabase('service-kit');
  const time = createTestClock(0);
  let begun = 0;
  const clock: Clock = {
    ...time,
    wait(ms, signal) {
      if (!signal?.aborted) begun += 1;
      return time.wait(ms, signal);
    },
  };
  let runs = 0;
  let hasRun = Promise.withResolvers<void>();
  const loop = createLeasedLoop({
    ...{ name: 'feed', intervalMs: 60_000, ttlSeconds: 30, db: () => database.db, clock },
    reporter: silentReporter,
    run: async () => {
      runs += 1;
      // Something changes during the second run.
      if (runs === 2) loop.wake();
      hasRun.resolve();
    },
  });
  const nextRun = async () => {
    await hasRun.promise;
    hasRun = Promise.withResolvers();
  };
  const waits = async (count: number) => {
    while (begun < count) await new Promise((done) => setImmediate(done));
  };
  await loop.start();
  await nextRun();
  await waits(1);
  loop.wake();
  await nextRun();
  await nextRun();
  assert.equal(runs, 3);
  for (let i = 0; i < 2; i += 1) {
    await waits(2 + i);
    loop.wake();
    await nextRun();
  }
  assert.equal(runs, 5, 'four were woken');
  await waits(4);
  loop.wake();
  await waits(5);
  assert.equal(runs, 5, 'the fifth waits for the end of the second');
  await time.advance(1_000);
  await nextRun();
  assert.equal(runs, 6);
  await loop.stop();
});

test('how a run ended is stored at most twice a minute while nothing changes, and at once when it fails', async () => {
  await using database = await createTestDatabase('service-kit');
  const clock = createTestClock(0);
  const intervalMs = 1_000;
  let ended = 0;
  let fault: string | null = null;
  const loop = createLeasedLoop({
    ...{ name: 'feed', intervalMs, ttlSeconds: 30, db: () => database.db, clock, reporter: silentReporter },
    run: async () => {
      ended += 1;
      return fault;
    },
  });
  /** Statements that stored how a run ended, told by what they leave: the test takes it away each time. */
  let stored = 0;
  const look = async () => {
    const { rowCount } = await database.pool.query(
      'update leases set interval_seconds = null where interval_seconds is not null',
    );
    stored += rowCount ?? 0;
  };
  /** Until this many runs have ended, and what they store is stored. */
  const until = async (count: number) => {
    while (ended < count || clock.waiting() === 0) await new Promise((done) => setImmediate(done));
    await look();
  };
  const run = async (count: number) => {
    for (let i = 0; i < count; i += 1) {
      await clock.advance(intervalMs);
      await until(ended + 1);
    }
  };
  await loop.start();
  await until(1);
  assert.equal(stored, 1);
  await run(29);
  assert.equal(stored, 1);
  await run(60);
  assert.equal(stored, 3);
  fault = 'away';
  await run(1);
  assert.equal(stored, 4);
  await loop.stop();
});
