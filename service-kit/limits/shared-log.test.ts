import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { createReporter, type Reporter, silentReporter } from '#common/reporter/index.ts';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { until } from '#service-kit/testing/until.ts';
import type { SlidingLog } from './event-log.ts';
import { createOwnLog, createSharedLog } from './index.ts';
import { createRedisLimits } from './redis-store.ts';

const minute = 60_000;

interface Time {
  ms: number;
}

/** A process: its connection to the store and its memory. */
async function startProcess(
  url: string,
  time: Time,
  { capacity = 3, reporter = silentReporter as Reporter, answerTimeoutMs = minute, probeMs = 1 } = {},
) {
  const store = createRedisLimits({
    ...{ url, program: 'operations', reporter, answerTimeoutMs, probeMs },
    nowMicros: () => Math.round(time.ms * 1000),
  });
  await store.start();
  const clock = { monotonicMs: () => time.ms };
  const log = createSharedLog('test', { capacity, windowMs: minute, clock }, store);
  return { store, log, [Symbol.asyncDispose]: () => store.stop() };
}

const reaches = (isTrue: () => boolean) => until(`${isTrue}`, minute, isTrue);

const allowed = async (log: SlidingLog, key: string, times: number) => {
  const answers = await Promise.all(Array.from({ length: times }, () => log.take(key)));
  return answers.filter(({ isAllowed }) => isAllowed).length;
};

test('API-8.a: in one process and in the store, a limit gives the same answers, in 60 random histories over three processes', async () => {
  await using redis = await startRedis();
  const random = seededRandom(11);
  const time = { ms: 1_000_000 };
  await using one = await startProcess(redis.url, time);
  await using two = await startProcess(redis.url, time);
  await using three = await startProcess(redis.url, time);
  for (let history = 0; history < 60; history += 1) {
    const capacity = 1 + Math.floor(random() * 6);
    const bounds = { capacity, windowMs: minute, clock: { monotonicMs: () => time.ms } };
    const own = createOwnLog(bounds);
    const shared = [one, two, three].map(({ store }) => createSharedLog(`history ${history}`, bounds, store));
    const held: { key: string; own: number; shared: number; log: SlidingLog }[] = [];
    for (let step = 0; step < 60; step += 1) {
      const key = `key ${Math.floor(random() * 3)}`;
      const log = shared[Math.floor(random() * 3)]!;
      if (random() < 0.1 && held.length > 0) {
        const given = held.splice(Math.floor(random() * held.length), 1)[0]!;
        await own.giveBack(given.key, given.own);
        await given.log.giveBack(given.key, given.shared);
      }
      const { event: ownEvent, ...expected } = await own.take(key);
      const { event, ...answer } = await log.take(key);
      assert.deepEqual(answer, expected, `history ${history}, step ${step}`);
      if (answer.isAllowed) held.push({ key, own: ownEvent, shared: event, log });
      // Often to the millisecond at which the oldest event leaves the window.
      time.ms += random() < 0.2 ? expected.resetSeconds * 1000 : Math.floor(random() ** 3 * 40_000);
    }
  }
});

test('API-8.a: of many requests at once over two processes exactly the limit is allowed, and keys expire with their window', async () => {
  await using redis = await startRedis();
  const time = { ms: 5_000 };
  await using one = await startProcess(redis.url, time, { capacity: 120 });
  await using two = await startProcess(redis.url, time, { capacity: 120 });
  const counts = await Promise.all([allowed(one.log, 'a', 200), allowed(two.log, 'a', 200)]);
  assert.equal(counts[0] + counts[1], 120);
  assert.equal(await allowed(two.log, 'b', 1), 1, 'another key has a limit of its own');
  const left = Number(await redis.cli('pttl', 'svc-limits:operations:test:a'));
  assert.ok(left > 0 && left <= minute, `${left} ms`);
});

test('a store whose clock is set back allows no key more than its limit, and refuses for a window at most', async () => {
  await using redis = await startRedis();
  const time = { ms: 10_000_000 };
  await using one = await startProcess(redis.url, time);
  assert.equal(await allowed(one.log, 'a', 3), 3);
  time.ms -= 3_600_000;
  const { event: _, ...refused } = await one.log.take('a');
  assert.deepEqual(refused, { isAllowed: false, remaining: 0, resetSeconds: 60 });
  time.ms += minute;
  assert.equal(await allowed(one.log, 'a', 4), 3);
});

test('without the store each process goes on counting for itself, and the store is told of it when it is back', async () => {
  await using redis = await startRedis();
  const time = { ms: 0 };
  const lines: string[] = [];
  const reporter = createReporter({ program: 'operations', write: (line) => lines.push(line) });
  await using one = await startProcess(redis.url, time, { reporter });
  await using two = await startProcess(redis.url, time);
  assert.equal(await allowed(one.log, 'a', 2), 2);
  await redis.kill();
  assert.equal(await allowed(one.log, 'a', 3), 1, 'the two that it has allowed before count');
  assert.equal(await allowed(two.log, 'a', 4), 3, 'each process allows the limit at most');
  assert.match(one.store.problem!, /does not answer/);
  await redis.revive();
  await reaches(() => one.store.problem === null && two.store.problem === null);
  assert.equal(await allowed(one.log, 'a', 1), 0, 'a store without data is told of the three');
  assert.equal(await redis.cli('zcard', 'svc-limits:operations:test:a'), '3');
  assert.equal(await allowed(two.log, 'a', 1), 0);
  assert.equal(await redis.cli('zcard', 'svc-limits:operations:test:a'), '6');
  time.ms += minute;
  assert.equal(await allowed(one.log, 'a', 4), 3);
  const said = lines.filter((line) => line.includes('limits are counted'));
  assert.deepEqual(
    said.map((line) => /limits are counted in (the limit store|this process alone)/.exec(line)![0]),
    [
      'limits are counted in the limit store',
      'limits are counted in this process alone',
      'limits are counted in the limit store',
    ],
  );
});

test('a request waits for a silent store once; those after it do not ask it, until it answers again', async () => {
  await using redis = await startRedis();
  const time = { ms: 0 };
  await using one = await startProcess(redis.url, time, { answerTimeoutMs: 500, capacity: 5 });
  assert.equal(await allowed(one.log, 'a', 1), 1);
  await redis.cli('client', 'pause', '3600000', 'write');
  assert.equal(await allowed(one.log, 'a', 1), 1);
  // In time, or at all: a connection that was silent is made anew meanwhile.
  assert.match(one.store.problem!, /does not answer/);
  assert.equal(await allowed(one.log, 'a', 4), 3);
  await redis.cli('client', 'unpause');
  await reaches(() => one.store.problem === null);
  assert.equal((await one.log.take('a')).isAllowed, false);
  assert.equal(await redis.cli('zcard', 'svc-limits:operations:test:a'), '5', 'no event counts twice');
});

test('a program starts and stops without its store, and counts for itself meanwhile', async () => {
  const redis = await startRedis();
  await redis.kill();
  const time = { ms: 0 };
  await using one = await startProcess(redis.url, time, { answerTimeoutMs: 500 });
  assert.match(one.store.problem!, /does not answer|not connected/);
  assert.equal(await allowed(one.log, 'a', 4), 3);
  await redis.revive();
  await reaches(() => one.store.problem === null);
  assert.equal(await allowed(one.log, 'a', 1), 0);
  await redis.kill();
});

test('a store that evicts is not used and named with the remedy; a full one is not either, and its password is in no message', async () => {
  await using redis = await startRedis('--requirepass', 'hidden-word', '--maxmemory-policy', 'allkeys-lru');
  const url = redis.url.replace('redis://', 'redis://:hidden-word@');
  const cli = (...args: string[]) => redis.cli('--no-auth-warning', '-a', 'hidden-word', ...args);
  const lines: string[] = [];
  const reporter = createReporter({ program: 'monitor', write: (line) => lines.push(line) });
  const time = { ms: 0 };
  await using one = await startProcess(url, time, { reporter });
  assert.match(one.store.problem!, /allkeys-lru.*Set maxmemory-policy to noeviction/);
  assert.equal(await allowed(one.log, 'a', 4), 3);
  assert.equal(await cli('exists', 'svc-limits:operations:test:a'), '0');
  await cli('config', 'set', 'maxmemory', '1');
  await cli('config', 'set', 'maxmemory-policy', 'noeviction');
  // The policy is asked for again with the next connection.
  await cli('client', 'kill', 'type', 'normal');
  await reaches(() => one.store.problem === 'The limit store is full.');
  assert.equal(await allowed(one.log, 'b', 4), 3, 'counted in this process');
  await cli('config', 'set', 'maxmemory', '0');
  await reaches(() => one.store.problem === null);
  assert.equal(await allowed(one.log, 'b', 1), 0, 'the store is told of the three');
  await cli('config', 'set', 'maxmemory', '1');
  assert.equal(await allowed(one.log, 'c', 4), 3);
  await reaches(() => one.store.problem === 'The limit store is full.');
  assert.equal(await cli('exists', 'svc-limits:monitor:test:c'), '0', 'refused by the full store');
  await cli('config', 'set', 'maxmemory', '0');
  await reaches(() => one.store.problem === null);
  const wrong = createRedisLimits({ url: url.replace('word', 'wrong'), program: 'monitor', reporter });
  await wrong.start();
  assert.match(wrong.problem!, /not connected|does not answer/);
  await wrong.stop();
  assert.ok(lines.length >= 3);
  assert.deepEqual(
    [...lines, one.store.problem ?? '', wrong.problem ?? ''].filter((line) => line.includes('hidden')),
    [],
  );
});
