/**
 * Proof by comparison: both live stores receive the same random history and must answer every step alike, and like a
 * simple model in memory.
 *
 * Windows come late, early, twice, expired, ahead of the clock, for several sites and sensors. Time advances, and
 * limits are small, so that they are reached often.
 */

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { seededRandom } from '#common/random/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import {
  decodedBytes,
  isKept,
  type LiveStore,
  rateOf,
  rateSeconds,
  type StoredWindow,
} from '#monitor/live/live-store.ts';
import { createPostgresStore } from '#monitor/live/postgres-store.ts';
import { createRedisStore } from '#monitor/live/redis-store.ts';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';

export const name = 'live-stores';

export interface StoresOptions {
  /** Number of histories. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'trimmed_by_arrival' | 'repetition_stored' | 'age_by_arrival' | null;

const steps = 25;
const historySeconds = 300;

export async function prove(options: StoresOptions) {
  const offences = await compareStores(options, null);
  for (const offence of offences) options.report(offence);
  let caught = 0;
  for (const plant of ['trimmed_by_arrival', 'repetition_stored', 'age_by_arrival'] as const) {
    const found = await compareStores({ ...options, n: 200, report: () => {} }, plant);
    options.report(`planted ${plant}: ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: 'PostgreSQL and Redis store the same live windows and answer every step like a simple model',
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of 3`,
  };
}

/** Plays histories. Returns the differences as sentences. */
export async function compareStores({ n, seed, report }: StoresOptions, plant: Plant): Promise<string[]> {
  await using redis = await startRedis();
  await using database = await createTestDatabase('monitor');
  const sites = await addSites(database);
  const random = seededRandom(seed);
  const offences: string[] = [];
  for (let i = 0; i < n && offences.length < 5; i += 1) {
    await database.pool.query('truncate live_windows');
    await redis.cli('flushall');
    offences.push(...(await playHistory(i, random, { redisUrl: redis.url, database, sites }, plant)));
    if (i % 100 === 99) report(`${i + 1} histories`);
  }
  return offences;
}

interface Place {
  redisUrl: string;
  database: TestDatabase;
  sites: { siteId: number; sensors: number[] }[];
}

async function playHistory(
  index: number,
  random: () => number,
  { redisUrl, database, sites }: Place,
  plant: Plant,
): Promise<string[]> {
  let nowMs = Math.floor(Date.now() / 10_000) * 10_000 + 3_000;
  const historyMax = 1 + Math.floor(random() * 12);
  const bounds = { historySeconds, historyMax, now: () => nowMs };
  const postgres = createPostgresStore(() => database.db, bounds);
  const redis = createRedisStore({ ...bounds, url: redisUrl, reporter: silentReporter });
  const model = createModel(bounds, plant);
  await redis.start();
  const runs = Array.from({ length: 2 }, () => randomUUID());
  const sent: LiveWindow[] = [];
  try {
    for (let step = 0; step < steps; step += 1) {
      const place = sites[Math.floor(random() * sites.length)]!;
      const sensor = { siteId: place.siteId, id: place.sensors[Math.floor(random() * 2)]! };
      const ask = makeStep(random, nowMs, sensor, runs, sent);
      const answers = await Promise.all([ask(postgres), ask(redis), ask(model)]);
      for (const [i, engine] of ['PostgreSQL', 'Redis'].entries()) {
        if (!isDeepStrictEqual(answers[i], answers[2])) {
          const [said, truth] = [answers[i], answers[2]].map((one) => JSON.stringify(one).slice(0, 300));
          return [`history ${index}, step ${step}: ${engine} says ${said} instead of ${truth}`];
        }
      }
      nowMs += Math.floor(random() ** 3 * 120) * 1000;
    }
    return [];
  } finally {
    await redis.stop();
  }
}

/** One request to all three. */
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

/** The specification as a simple model. */
function createModel(
  bounds: { historySeconds: number; historyMax: number; now(): number },
  plant: Plant,
): Pick<LiveStore, 'add' | 'list' | 'listRates'> {
  let arrivals = 0;
  let held: { siteId: number; key: string; arrival: number; arrivedAtMs: number; window: StoredWindow }[] =
    [];
  const fresh = (siteId: number) =>
    held
      .filter((one) => one.siteId === siteId)
      .filter((one) =>
        plant === 'age_by_arrival'
          ? bounds.now() - one.arrivedAtMs < bounds.historySeconds * 1000
          : bounds.now() - one.window.startedAtMs < bounds.historySeconds * 1000,
      )
      .sort((a, b) => b.window.startedAtMs - a.window.startedAtMs || b.arrival - a.arrival);
  return {
    async add(sensor, runId, windows) {
      const receipt = { stored: 0, duplicates: 0, too_old: 0 };
      for (const { totals, ...window } of windows) {
        const key = `${sensor.id} ${runId} ${window.capture} ${window.startedAtMs}`;
        if (!isKept(window.startedAtMs, bounds.now(), bounds.historySeconds)) receipt.too_old += 1;
        else if (held.some((one) => one.key === key) && plant !== 'repetition_stored')
          receipt.duplicates += 1;
        else {
          const { packets, ipBytes, parserDropped, kernelDropped } = totals;
          const stored = { ...window, sensorId: sensor.id, packets, ipBytes, parserDropped, kernelDropped };
          arrivals += 1;
          const { siteId } = sensor;
          held.push({ siteId, key, arrival: arrivals, arrivedAtMs: bounds.now(), window: stored });
          receipt.stored += 1;
        }
      }
      const order = fresh(sensor.siteId);
      if (plant === 'trimmed_by_arrival') order.sort((a, b) => b.arrival - a.arrival);
      const kept = new Set(order.slice(0, bounds.historyMax));
      held = held.filter((one) => one.siteId !== sensor.siteId || kept.has(one));
      return receipt;
    },
    async list({ siteId, sinceMs, limit, hostsMax, bytesMax }) {
      const matching = fresh(siteId).filter((one) => one.window.startedAtMs >= sinceMs);
      let rows = 0;
      const windows = matching.slice(0, limit).flatMap(({ window }, i) => {
        rows += window.hosts.length;
        const bytes = (i + 1) * decodedBytes.window + rows * decodedBytes.host;
        return i === 0 || (rows <= hostsMax && bytes <= bytesMax) ? [window] : [];
      });
      return {
        windows,
        isLimited: windows.length > 0 && windows.length < matching.length,
        isTrimmed: matching.length >= bounds.historyMax,
      };
    },
    async listRates(siteId) {
      const newest = new Map<string, StoredWindow>();
      for (const { window } of fresh(siteId)) {
        if (bounds.now() - window.startedAtMs >= rateSeconds * 1000) continue;
        const key = `${window.sensorId} ${window.capture}`;
        if (!newest.has(key)) newest.set(key, window);
      }
      return [...newest.values()]
        .map(rateOf)
        .sort((a, b) => a.sensorId - b.sensorId || (a.capture < b.capture ? -1 : 1));
    },
  };
}

async function addSites(database: TestDatabase): Promise<Place['sites']> {
  const { rows } = await database.pool.query<{ siteId: number; sensors: number[] }>(`
    with made as (insert into sites (name) values ('One'), ('Two') returning id),
    added as (insert into sensors (site_id, host_name, node)
      select id, 'node-' || i, 'node' from made, generate_series(1, 2) i returning id, site_id)
    select site_id as "siteId", array_agg(id::int order by id) as sensors from added group by 1 order by 1`);
  return rows;
}
