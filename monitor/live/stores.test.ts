import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { createRedisStore } from './redis-store.ts';
import { compareStores } from './testing/compare-stores.ts';

const histories = Number(process.env.SVC_TEST_LIVE_HISTORIES ?? 25);
const sensor = { id: 1, siteId: 7 };

/** One look at the clock for all windows of a test, which must not fall onto one another. */
function makeWindows(ages: readonly number[]): LiveWindow[] {
  const nowMs = Date.now();
  return ages.map((age) => makeWindow(age, 1, nowMs));
}

function makeWindow(ageSeconds: number, hosts = 1, nowMs = Date.now()): LiveWindow {
  const totals = {
    packets: 9,
    ipPackets: 2,
    ipBytes: 3,
    nonIpPackets: 0,
    parserDropped: 7,
    kernelDropped: 0,
    detailTruncated: 0,
  };
  const startedAtMs = Math.floor(nowMs / 10_000) * 10_000 - ageSeconds * 1000;
  return {
    capture: 'eth0',
    role: 'uplink',
    startedAtMs,
    observedMs: 10_000,
    totals,
    hosts: Array.from({ length: hosts }, (_, i) => ({
      address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
      rxBytes: (i * 2_654_435_761) % 2 ** 32,
      txBytes: 1,
      packets: 1,
    })),
    hostsLeftOut: 0,
  };
}

test(`NET-8.7: both live stores handle age, length and repetitions alike, in ${histories} random histories`, () =>
  compareStores(histories, 3));

test('NET-8.7, NET-2.2.6: windows in Redis keep parser drops, expire with the newest, and are visible to another process', async (t) => {
  await using redis = await startRedis();
  const options = {
    url: redis.url,
    historySeconds: 60,
    historyMax: 3,
    reporter: silentReporter,
  };
  const [store, other] = [createRedisStore(options), createRedisStore(options)];
  t.after(() => Promise.all([store.stop(), other.stop()]));
  await Promise.all([store.start(), other.start()]);
  const windows = makeWindows([20, 30, 40, 50]);
  assert.deepEqual(await store.add(sensor, randomUUID(), windows), { stored: 4, duplicates: 0, too_old: 0 });
  const read = await other.list({ siteId: 7, sinceMs: 0, limit: 10, hostsMax: 100, bytesMax: 1e9 });
  assert.deepEqual(
    read.windows.map((one) => [one.startedAtMs, one.parserDropped]),
    windows.slice(0, 3).map((one) => [one.startedAtMs, 7]),
  );
  assert.equal(
    await redis.cli('xlen', 'svc-live:{7}:windows'),
    '3',
    'exactly the windows above the length are deleted',
  );
  const expiry = Number(await redis.cli('pexpiretime', 'svc-live:{7}:windows'));
  assert.equal(
    expiry,
    windows[0]!.startedAtMs + 60_000,
    'a site without sensors is deleted with its newest window',
  );
});

test('NET-8.7: a store with eviction is refused with its name; a full one refuses whole uploads, and continues when there is room', async (t) => {
  await using redis = await startRedis('--maxmemory', '2500kb', '--maxmemory-policy', 'allkeys-lru');
  const log: string[] = [];
  const reporter = createReporter({ program: 'monitor', write: (line) => log.push(line) });
  const store = createRedisStore({ url: redis.url, historySeconds: 3600, historyMax: 1000, reporter });
  t.after(() => store.stop());
  await store.start();
  assert.match((await store.findProblem())!, /allkeys-lru.*Set maxmemory-policy to noeviction/);
  assert.ok(
    log.some((line) => line.includes('noeviction')),
    'it is logged at the start',
  );
  await assert.rejects(store.add(sensor, randomUUID(), [makeWindow(20)]), (error) =>
    hasCode(error, 'live.store_evicts'),
  );
  await redis.cli('config', 'set', 'maxmemory-policy', 'noeviction');
  const again = createRedisStore({ url: redis.url, historySeconds: 3600, historyMax: 1000, reporter });
  t.after(() => again.stop());
  await again.start();
  assert.equal(await again.findProblem(), null);
  const runId = randomUUID();
  let stored = 0;
  const fill = async () => {
    for (let age = 10; age < 3500; age += 10) {
      // Ten seconds may pass between two windows; then the second is the same window.
      stored += (await again.add(sensor, runId, [makeWindow(age, 1000)])).stored;
    }
  };
  await assert.rejects(fill(), (error) => hasCode(error, 'live.store_full'));
  assert.ok(stored > 10, `${stored} windows were stored`);
  const { windows } = await again.list({ siteId: 7, sinceMs: 0, limit: 1000, hostsMax: 1e9, bytesMax: 1e9 });
  assert.equal(windows.length, stored, 'all acknowledged windows are stored');
  await redis.cli('config', 'set', 'maxmemory', '64mb');
  assert.equal((await again.add(sensor, runId, [makeWindow(0)])).stored, 1);
  await redis.kill();
  await assert.rejects(again.add(sensor, runId, [makeWindow(0)]), (error) =>
    hasCode(error, 'live.store_unavailable'),
  );
  assert.match((await again.findProblem())!, /does not answer/);
});
