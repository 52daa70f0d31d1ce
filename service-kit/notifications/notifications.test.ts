import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createNotifications } from './index.ts';

test('a wait ends with the change that it waits for, and holds no connection of its own', async () => {
  await using database = await createTestDatabase('service-kit');
  const notifications = createNotifications({ pool: () => database.pool, channel: 'changes' });
  let value = 0;
  let looks = 0;
  const wait = (topic: string, timeoutMs: number, wanted: number) =>
    notifications.waitFor(
      { topic, timeoutMs },
      async () => {
        looks += 1;
        return value;
      },
      (seen) => seen >= wanted,
    );
  assert.equal(await wait('a', 1_000, 0), 0, 'what is so already is told at once');
  const many = Array.from({ length: 50 }, () => wait('a', 600_000, 1));
  const other = wait('b', 300, 1);
  while (looks < 52) await new Promise((wake) => setImmediate(wake));
  assert.equal(database.pool.totalCount - database.pool.idleCount, 1, 'fifty waits share one connection');
  assert.equal(await other, 0, 'a wait that saw nothing ends with its time');
  const before = looks;
  value = 1;
  await database.pool.query("select pg_notify('changes', 'a')");
  assert.deepEqual(new Set(await Promise.all(many)), new Set([1]));
  assert.equal(looks - before, 50, 'each checked once more, and none polled');
  await notifications.stop();
});

test('a wait survives the loss of its connection', async () => {
  await using database = await createTestDatabase('service-kit');
  const notifications = createNotifications({ pool: () => database.pool, channel: 'changes' });
  let value = 0;
  let looks = 0;
  const wait = notifications.waitFor(
    { topic: 'a', timeoutMs: 600_000 },
    async () => {
      looks += 1;
      return value;
    },
    (seen) => seen === 1,
  );
  while (looks < 1) await new Promise((wake) => setImmediate(wake));
  await database.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen%'",
  );
  while (looks < 2) await new Promise((wake) => setImmediate(wake));
  value = 1;
  await database.pool.query("select pg_notify('changes', 'a')");
  assert.equal(await wait, 1);
  await notifications.stop();
});

test('releasing ends every wait at once, as does the caller who left', async () => {
  await using database = await createTestDatabase('service-kit');
  const notifications = createNotifications({ pool: () => database.pool, channel: 'changes' });
  const gone = new AbortController();
  const waits = [undefined, gone.signal].map((signal) =>
    notifications.waitFor(
      { topic: 'a', timeoutMs: 600_000, signal },
      async () => 'so',
      () => false,
    ),
  );
  gone.abort();
  assert.equal(await waits[1], 'so');
  notifications.release();
  assert.equal(await waits[0], 'so');
  await notifications.stop();
});

test('a wait leaves no listener behind, however often it was woken', async () => {
  await using database = await createTestDatabase('service-kit');
  const notifications = createNotifications({ pool: () => database.pool, channel: 'changes' });
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  let listeners = 0;
  const count = (by: number, usual: typeof addEventListener): typeof addEventListener =>
    function counted(this: EventTarget, ...given) {
      if (this instanceof AbortSignal) listeners += by;
      return usual.apply(this, given);
    };
  EventTarget.prototype.addEventListener = count(1, addEventListener);
  EventTarget.prototype.removeEventListener = count(-1, removeEventListener);
  try {
    const { signal } = new AbortController();
    let looks = 0;
    await notifications.waitFor(
      { topic: 'a', timeoutMs: 600_000, signal },
      async () => {
        looks += 1;
        if (looks < 20) await database.pool.query("select pg_notify('changes', 'a')");
        return looks;
      },
      (seen) => seen === 20,
    );
    assert.equal(listeners, 0);
  } finally {
    Object.assign(EventTarget.prototype, { addEventListener, removeEventListener });
  }
  await notifications.stop();
});
