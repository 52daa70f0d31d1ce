import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createTestDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';
import { createLeasedLoop, holdsTerm, releaseLease, takeLease } from './index.ts';

test('one holder at a time; an expired lease passes on with a higher term, and the old term is refused', async () => {
  await using database = await createTestDatabase('service-kit');
  const { db } = database;
  assert.equal(await takeLease(db, 'feed', 'a', 30), 1);
  assert.equal(await takeLease(db, 'feed', 'a', 30), 1, 'a renewal keeps the term');
  assert.equal(await takeLease(db, 'feed', 'b', 30), null);
  assert.ok(await holdsTerm(db, 'feed', 1));
  await moveDatabaseClock(database, '31 seconds');
  assert.ok(!(await holdsTerm(db, 'feed', 1)), 'nobody holds an expired term');
  assert.equal(await takeLease(db, 'feed', 'b', 30), 2);
  assert.ok(!(await holdsTerm(db, 'feed', 1)));
  assert.equal(await takeLease(db, 'feed', 'a', 30), null);
});

test('a holder that comes back after its own lease ran out gets a new term', async () => {
  await using database = await createTestDatabase('service-kit');
  assert.equal(await takeLease(database.db, 'feed', 'a', 30), 1);
  await moveDatabaseClock(database, '31 seconds');
  assert.equal(await takeLease(database.db, 'feed', 'a', 30), 2);
});

test('of many that ask at once exactly one gets the lease', async () => {
  await using database = await createTestDatabase('service-kit');
  const terms = await Promise.all(
    Array.from({ length: 20 }, (_, i) => takeLease(database.db, 'feed', `h${i}`, 30)),
  );
  assert.equal(terms.filter((term) => term !== null).length, 1);
});

test('a released lease is free at once', async () => {
  await using database = await createTestDatabase('service-kit');
  await takeLease(database.db, 'feed', 'a', 30);
  await releaseLease(database.db, 'feed', 'a');
  assert.equal(await takeLease(database.db, 'feed', 'b', 30), 2);
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
