/**
 * Both live stores receive the same random history and must answer every step alike. Windows come late, early, twice, expired,
 * ahead of the clock, for several sites and sensors. Time advances, and limits are small, so that they are reached often.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { seededRandom } from '#common/random/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { decodedBytes, type LiveStore } from '../live-store.ts';
import { createPostgresStore } from '../postgres-store.ts';
import { createRedisStore } from '../redis-store.ts';

const steps = 25;
const historySeconds = 300;

/** Plays this many histories; the first difference is an error. */
export async function compareStores(histories: number, seed: number): Promise<void> {
  await using redis = await startRedis();
  await using database = await createTestDatabase('monitor');
  const sites = await addSites(database);
  const random = seededRandom(seed);
  for (let history = 0; history < histories; history += 1) {
    await database.pool.query('truncate live_windows');
    await redis.cli('flushall');
    let nowMs = Math.floor(Date.now() / 10_000) * 10_000 + 3_000;
    const bounds = { historySeconds, historyMax: 1 + Math.floor(random() * 12), now: () => nowMs };
    const inPostgres = createPostgresStore(() => database.db, bounds);
    const inRedis = createRedisStore({ ...bounds, url: redis.url, reporter: silentReporter });
    await inRedis.start();
    const runs = [randomUUID(), randomUUID()];
    const sent: LiveWindow[] = [];
    try {
      for (let step = 0; step < steps; step += 1) {
        const { siteId, sensors } = sites[Math.floor(random() * sites.length)]!;
        const ask = makeStep(random, nowMs, { siteId, id: sensors[Math.floor(random() * 2)]! }, runs, sent);
        const [expected, found] = await Promise.all([ask(inPostgres), ask(inRedis)]);
        assert.deepEqual(found, expected, `history ${history}, step ${step}: Redis answers otherwise`);
        nowMs += Math.floor(random() ** 3 * 120) * 1000;
      }
    } finally {
      await inRedis.stop();
    }
  }
}

/** One request to both. */
function makeStep(
  random: () => number,
  nowMs: number,
  sensor: { id: number; siteId: number },
  runs: readonly string[],
  sent: LiveWindow[],
): (store: Pick<LiveStore, 'add' | 'list' | 'listRates'>) => Promise<unknown> {
  const pick = random();
  if (pick < 0.6) {
    const windows = new Map<string, LiveWindow>();
    for (let i = 0; i <= random() * 4; i += 1) {
      const again = sent.length > 0 && random() < 0.3 ? sent[Math.floor(random() * sent.length)] : null;
      const window = again ?? makeWindow(random, nowMs);
      windows.set(`${window.startedAtMs} ${window.capture}`, window);
      sent.push(window);
    }
    const run = runs[Math.floor(random() * runs.length)]!;
    return (store) => store.add(sensor, run, [...windows.values()]);
  }
  if (pick < 0.7) return (store) => store.listRates(sensor.siteId);
  const range = {
    siteId: sensor.siteId,
    sinceMs: nowMs - Math.floor(random() * historySeconds * 1200),
    limit: 1 + Math.floor(random() * 14),
    hostsMax: Math.floor(random() * 30),
    bytesMax: Math.floor(random() * 40 * decodedBytes.window),
  };
  return (store) => store.list(range);
}

function makeWindow(random: () => number, nowMs: number): LiveWindow {
  const ageSeconds = Math.floor(random() * (historySeconds + 120)) - 80;
  const startedAtMs = Math.floor((nowMs - ageSeconds * 1000) / 10_000) * 10_000;
  const count = () => Math.floor(random() ** 8 * 2 ** 53);
  const hosts = Array.from({ length: Math.floor(random() * 4) }, (_, i) => ({
    address: i % 2 === 0 ? `192.0.2.${i + 1}` : `2001:db8::${i}`,
    rxBytes: count(),
    txBytes: count(),
    packets: count(),
  }));
  const totals = {
    packets: count(),
    ipPackets: 0,
    ipBytes: count(),
    nonIpPackets: 0,
    parserDropped: count(),
    kernelDropped: count(),
    detailTruncated: 0,
  };
  const capture = ['eth0', 'br0', 'Br0.7'][Math.floor(random() * 3)]!;
  const role = capture === 'eth0' ? 'uplink' : 'bridge';
  const observedMs = 1 + Math.floor(random() * 10_000);
  return { capture, role, startedAtMs, observedMs, totals, hosts, hostsLeftOut: Math.floor(random() * 9) };
}

async function addSites(database: TestDatabase): Promise<{ siteId: number; sensors: number[] }[]> {
  const { rows } = await database.pool.query<{ siteId: number; sensors: number[] }>(`
    with made as (insert into sites (name) values ('One'), ('Two') returning id),
    added as (insert into sensors (site_id, host_name, node)
      select id, 'node-' || i, 'node' from made, generate_series(1, 2) i returning id, site_id)
    select site_id as "siteId", array_agg(id::int order by id) as sensors from added group by 1 order by 1`);
  return rows;
}
