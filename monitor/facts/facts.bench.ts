/**
 * Facts on PostgreSQL and on ClickHouse, in one run and of the same rows: how fast uploads are taken, how fast facts move between the
 * engines, how much room a day takes, and how fast it is read. ClickHouse runs within this process, PostgreSQL with every safety on.
 *
 * `SVC_BENCH_FACTS` is the number of application facts of the day, 10 million where it is unset.
 */
import { sql } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { host, usageRow } from '#monitor/testing/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createClickhouseFacts } from './clickhouse/clickhouse-facts.ts';
import type { FactClient } from './clickhouse/engine-store.ts';
import { createChdbEngine } from './clickhouse/testing/chdb-engine.ts';
import type { FactUpload } from './contract/facts.ts';
import { readKept } from './control/move-store.ts';
import { createFactStore, type FactStore, openScope } from './index.ts';
import { toClickhouseEnds } from './move/move-ends.ts';
import { benchAddress, fillDay, readRoom } from './testing/bench-days.ts';
import { type BenchDatabase, startBenchDatabase } from './testing/bench-monitor.ts';
import { familySeconds, processorSeconds } from './testing/processor-time.ts';
import { randomToken, seededBelow } from './testing/random-uploads.ts';

export const name = 'facts';

const daySeconds = 86_400;
const monthDays = 30;
/** The first is not measured: with it code is compiled, of which the engine that is measured second has less. */
const batches = 1 + 16;
const uploadsOfBatch = 64;
const longestMs = 600_000;
/** Of statements that make the days: the benchmark may be stopped for a while. */
const patientMs = 4 * 3_600_000;

export async function run(report: (line: string) => void): Promise<void> {
  const facts = Number(process.env.SVC_BENCH_FACTS ?? 10_000_000);
  await using bench = await startBenchDatabase();
  await using engine = await createChdbEngine();
  const db = () => bench.database.db;
  // Measured, also where pages would give up.
  const clickhouse = createClickhouseFacts({
    client: engine.client,
    db,
    nameApplication,
    exploreMs: longestMs,
  });
  await clickhouse.migrate();
  const { monitor } = bench;
  const { db: patient, pool } = createPool(bench.url, 4, { answerMs: patientMs });
  const postgres = createFactStore({ db: () => patient, nameApplication, exploreMs: longestMs });
  const siteId = (await monitor.sites.create(systemActor, 'Bench')).id;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const { credential } = (await monitor.sensors.enrol({
    ...{ token, host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' },
  }))!;
  const { id: sensorId } = (await monitor.sensors.authenticate(credential))!;
  const day = Math.floor(Date.now() / 1000 / daySeconds) * daySeconds - daySeconds;
  const stores = { PostgreSQL: postgres, ClickHouse: clickhouse };
  for (const [engineName, store] of Object.entries(stores))
    await takeUploads(report, engineName, { bench, store, origin: { siteId, sensorId } });
  await sql`truncate capture_minutes, host_minutes, application_facts, endpoint_pairs, site_minute_marks`.execute(
    db(),
  );
  for (let i = monthDays; i >= 1; i -= 1) {
    const start = day - i * daySeconds;
    const minutes = Array.from({ length: 24 }, (_, hour) => start + hour * 3600);
    await monitor.facts.prepare(minutes);
    await fillDay(patient, { siteId, sensorId, day: start, facts: i === 1 ? facts : 0 });
  }
  await monitor.facts.rollUp('none');
  await moveMonth(report, { bench, client: engine.client, clickhouse, siteId, day });
  for (const line of await readRoom(bench, engine.client)) report(line);
  const questions = questionsAbout({ siteId, fromMinute: day - daySeconds, toMinute: day });
  const askAll = async (engineName: string, store: FactStore) => {
    for (const [question, ask] of questions)
      report(`${engineName}, ${question}: ${Math.round(await timeOf(() => ask(store)))} ms`);
  };
  await askAll('ClickHouse', clickhouse);
  await sql`analyze`.execute(patient);
  await askAll('PostgreSQL without roll-ups', postgres);
  const rolled = await timeOnce(() => monitor.facts.rollUp('all'));
  report(`PostgreSQL: roll-ups of ${monthDays} days in ${Math.round(rolled / 1000)} s`);
  await sql`analyze`.execute(patient);
  await askAll('PostgreSQL', postgres);
  await pool.end();
}

/** An answer that takes longer is not asked for again: what an engine remembers of it is a small part of it. */
const askedOnceMs = 20_000;

/** Of the second of two answers, milliseconds. */
async function timeOf(ask: () => Promise<unknown>): Promise<number> {
  const first = await timeOnce(ask);
  return first > askedOnceMs ? first : await timeOnce(ask);
}

async function timeOnce(ask: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await ask();
  return performance.now() - begun;
}

interface Taking {
  bench: BenchDatabase;
  store: FactStore;
  origin: FactUpload['origin'];
}

async function takeUploads(report: (line: string) => void, engine: string, { bench, store, origin }: Taking) {
  const random = seededBelow(1);
  // Pairs are kept for 24 hours, and older ones are not written.
  const start = Math.floor(Date.now() / 60_000) * 60 - batches * uploadsOfBatch * 60;
  const all = Array.from({ length: batches }, (_, batch) =>
    Array.from({ length: uploadsOfBatch }, (__, i) =>
      uploadOf(random, origin, start + 60 * (batch * uploadsOfBatch + i)),
    ),
  );
  await store.prepare(all.flat().flatMap(({ minutes }) => minutes.map(({ minute }) => minute)));
  // Both engines are given the same uploads, and notes of them are shared.
  await sql`delete from appended_uploads`.execute(bench.database.db);
  const append = (uploads: readonly FactUpload[]) =>
    bench.database.db.transaction().execute((trx) => store.append(uploads, openScope(trx)));
  await append(all[0]!);
  let rows = 0;
  const processor = () => processorSeconds(process.pid) + familySeconds(bench.pid());
  const used = processor();
  const ms = await timeOnce(async () => {
    for (const uploads of all.slice(1)) {
      await append(uploads);
      for (const { minutes } of uploads)
        for (const one of minutes) rows += 1 + one.hosts.length + 2 * one.usage.length;
    }
  });
  const each = ((processor() - used) / rows) * 1e6;
  report(
    `${engine}: ${Math.round((rows / ms) * 1000)} rows/s in batches of ${uploadsOfBatch} uploads, ${each.toFixed(1)} µs of processor time a row, engine included`,
  );
}

function uploadOf(
  random: ReturnType<typeof seededBelow>,
  origin: FactUpload['origin'],
  minute: number,
): FactUpload {
  const address = (i: number) => `192.0.2.${i}`;
  const totals = {
    ...{ packets: 100, ipPackets: 100, ipBytes: 9000, nonIpPackets: 0 },
    ...{ parserDropped: 0, kernelDropped: 0, detailTruncated: 0 },
  };
  const one = {
    ...{ minute, capture: 'uplink0', role: 'uplink' as const, observedMs: 60_000, totals },
    hosts: Array.from({ length: 50 }, (_, i) => host(address(i), random(100_000), random(100_000))),
    usage: Array.from({ length: 400 }, (_, i) =>
      usageRow({
        client: address(i % 50),
        server: `198.51.100.${random(250)}`,
        name: `name${random(200)}.example`,
        clientBytes: random(10_000),
        serverBytes: random(100_000),
      }),
    ),
  };
  return { origin, token: randomToken(random), minutes: [one], gaps: [] };
}

interface Moving {
  bench: BenchDatabase;
  client: FactClient;
  clickhouse: ReturnType<typeof createClickhouseFacts>;
  siteId: number;
  day: number;
}

async function moveMonth(
  report: (line: string) => void,
  { bench, client, clickhouse, siteId, day }: Moving,
): Promise<void> {
  const db = () => bench.database.db;
  for (const table of [
    'capture_minutes',
    'host_minutes',
    'application_facts',
    'endpoint_pairs',
    'peer_minutes',
  ])
    await client.command({ query: `truncate table ${table}` });
  const ends = toClickhouseEnds(db, clickhouse.engine);
  const kept = await readKept(db());
  let rows = 0;
  const ms = await timeOnce(async () => {
    for (let i = monthDays; i >= 1; i -= 1)
      await ends.copyDay(
        { siteId, day: day - i * daySeconds, kept, peersFrom: kept.now, isAgain: false },
        async (more) => {
          rows += more;
        },
      );
  });
  const bounds = {
    ...{ fromMinute: day - daySeconds, toMinute: day, pairsFrom: kept.pairsFrom },
    ...{ peersFrom: kept.now, peerPairsFrom: kept.now },
  };
  report(`move to ClickHouse: ${rows} rows, ${Math.round((rows / ms) * 1000)} rows/s`);
  const sums = await timeOnce(() => ends.sumDay({ siteId, day: day - daySeconds }, bounds));
  report(`sums of the day in both engines: ${Math.round(sums)} ms`);
}

function questionsAbout(range: {
  siteId: number;
  fromMinute: number;
  toMinute: number;
}): [string, (store: FactStore) => Promise<unknown>][] {
  const view = { ...range, direction: null };
  const explored = {
    ...{ ...range, filters: [], owners: [], networks: [], stepSeconds: 600 },
    ...({ measure: 'bytes', order: 'size', rows: { limit: 10 } } as const),
  };
  const address = { ...range, address: benchAddress };
  const month = { ...address, fromMinute: range.toMinute - monthDays * daySeconds };
  return [
    ['sums of a site in steps of ten minutes', (store) => store.sumSite({ ...range, stepSeconds: 600 })],
    ['top addresses', (store) => store.listTopAddresses(range, 20)],
    ['ranking of applications', (store) => store.rankApplications({ ...view, limit: 50 })],
    ['explorer by address', (store) => store.explore({ ...explored, source: 'addresses', by: ['address'] })],
    [
      'explorer by application',
      (store) => store.explore({ ...explored, source: 'applications', by: ['application'] }),
    ],
    ["one address's applications of the day", (store) => store.sumAddressApplications(address)],
    ["one address's month, every minute", (store) => store.readAddress(month)],
  ];
}
