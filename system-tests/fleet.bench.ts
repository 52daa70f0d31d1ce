/**
 * What a fleet of sensors costs a monitor: `monitor serve` and its PostgreSQL, both apart, per sensor and minute. Simulated sensors
 * of 50 hosts and 200 applications send what real ones send in a minute: an upload, six live windows, two requests for the plan.
 *
 * All sensors of the fleet are enrolled, connected and have their servers in the inventory. Of them whole sites send an hour, as
 * fast as it goes; each part of the work is held until it is measured alone (`hold-work.ts`). A fleet of up to `wholeMax` sensors
 * then sends a minute in one go. Processor time is honest on a busy machine, elapsed time is not.
 *
 * `SVC_BENCH_SENSORS` lists the sizes of fleets, `SVC_BENCH_SITE` the sensors of a site, `SVC_BENCH_SAMPLE` the sites that send,
 * `SVC_BENCH_MINUTES` their minutes, `SVC_BENCH_WHOLE` the largest fleet that sends as a whole. `SVC_BENCH_STATEMENTS=1` shows
 * the statements that took the most time in each part.
 */
import { loadavg } from 'node:os';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createRankingLoop } from '#monitor/applications/index.ts';
import { countRows, type FleetSensor } from '#monitor/facts/testing/bench-fleet.ts';
import { startBenchDatabase, startBenchServer } from '#monitor/facts/testing/bench-monitor.ts';
import { seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { createNamesLoop } from '#monitor/search/index.ts';
import { createHeldWork } from './testing/fleet/hold-work.ts';
import { fillLiveHour, makeFleet, windowsOfHour } from './testing/fleet/make-fleet.ts';
import {
  addUsed,
  countSockets,
  measure,
  readDisk,
  readLog,
  readMemory,
  type Used,
} from './testing/fleet/meter.ts';
import { benchPages } from './testing/fleet/pages.ts';
import { describeDisk, describeMemory, describeParts, type PartCost } from './testing/fleet/report.ts';
import { costOf, countWire, measurePart, pidsOf, type Running } from './testing/fleet/running.ts';
import { SensorClient } from './testing/fleet/sensor-client.ts';
import { createStatementLog, preloadStatements } from './testing/fleet/statement-log.ts';

export const name = 'fleet';

const sizes = (process.env.SVC_BENCH_SENSORS ?? '1000,3000,10000').split(',').map(Number);
const ofSite = Number(process.env.SVC_BENCH_SITE ?? 50);
const sampleSites = Number(process.env.SVC_BENCH_SAMPLE ?? 2);
const minutes = Number(process.env.SVC_BENCH_MINUTES ?? 60);
const wholeMax = Number(process.env.SVC_BENCH_WHOLE ?? 3000);
const showsStatements = process.env.SVC_BENCH_STATEMENTS === '1';
/** Minutes of uploads that are stored before they are applied. */
const minutesAtOnce = 10;
const idleSeconds = 30;
/** Times that the sample sends its live windows of a minute, and asks for its plan. */
const liveMinutes = 5;
const planRounds = 10;
const liveOfMinute = 6;
const readEveryMinutes = 5;
const sleep = (ms: number) => new Promise<void>((wake) => setTimeout(wake, ms));

export async function run(report: (line: string) => void): Promise<void> {
  for (const sensors of sizes) {
    if (sensors % ofSite !== 0) throw new Error(`${sensors} sensors are no whole sites of ${ofSite}`);
    await benchSize(sensors, report);
  }
}

async function benchSize(sensors: number, report: (line: string) => void): Promise<void> {
  await using bench = await startBenchDatabase(undefined, showsStatements ? preloadStatements : {});
  const sites = sensors / ofSite;
  const fleet = await makeFleet(bench, sensors, sites);
  const held = await createHeldWork(bench);
  await held.holdLoops();
  await using server = await startBenchServer(bench, {
    SVC_NVD_URL: '',
    SVC_MONITOR_CONNECTIONS_MAX: String(sensors + 1000),
    // As many as an hour has: each window that comes puts one out, as in the hour that follows.
    SVC_LIVE_HISTORY_MAXLEN: String(windowsOfHour * ofSite),
  });
  const sample = fleet.slice(0, Math.min(sensors, sampleSites * ofSite));
  const client = new SensorClient(server.port, seededBelow(1));
  const statements = showsStatements ? await createStatementLog(bench, report) : null;
  const idle = { serve: 0, postgres: 0 };
  const running: Running = {
    ...{ bench, server, held, client, sample, idle, statements, report },
    fleet: inTurns(fleet),
  };
  report(
    `${sensors} sensors on ${sites} sites, ${sensors * 50} hosts; ${sample.length} of them send ${minutes} minutes; load ${loadNow()}`,
  );
  try {
    const parts = await benchParts(running);
    describeParts(parts, sensors, running.idle, report);
    await benchPages(running);
    if (sensors <= wholeMax) await benchWhole(running);
  } finally {
    client.close();
    await held.close();
    await statements?.close();
  }
}

/** A sensor of each site, then another of each: sensors of all sites send at the same time. */
const inTurns = (fleet: readonly FleetSensor[]) =>
  fleet.toSorted((a, b) => (a.index % ofSite) - (b.index % ofSite) || a.index - b.index);

const loadNow = () =>
  loadavg()
    .map((one) => one.toFixed(1))
    .join(', ');

async function benchParts(running: Running): Promise<PartCost[]> {
  await benchConnections(running);
  const ofSample = running.sample.length;
  const planMinutes = (planRounds * ofSample) / 2;
  const askPlans = async () => {
    for (let i = 0; i < planRounds; i += 1) await running.client.fetchPlans(running.sample);
  };
  const plans = await countWire(running, 'plans', planMinutes, () =>
    measurePart(running, 'plans', planMinutes, askPlans),
  );
  const live = await countWire(running, 'live windows', liveMinutes * ofSample, () => benchLive(running));
  return [plans, live, ...(await benchMinutes(running))];
}

/** Every sensor connects, asks for its plan and says how it is; then nothing comes for a while. */
async function benchConnections(running: Running): Promise<void> {
  const { client, fleet, server, bench, report } = running;
  const first = await measurePart(running, 'first plans', fleet.length, () => client.fetchPlans(fleet));
  const windowAt = windowOf(Date.now());
  const live = await measurePart(running, 'first windows', fleet.length, () =>
    client.postLive(fleet, windowAt, true),
  );
  const memory = readMemory(pidsOf(running));
  const { rows } = await bench.database.pool.query<{ n: number }>(
    "select count(*)::int as n from pg_stat_activity where application_name <> '' or backend_type = 'client backend'",
  );
  report(
    `connected: ${client.openConnections()} connections of sensors, ${client.unanswered} requests refused; serve has ${countSockets(server.pid)} sockets, PostgreSQL ${rows[0]!.n} clients; a first plan takes ${ms(first)}, a first live window ${ms(live)}; memory: ${describeMemory(memory)}`,
  );
  await running.statements?.begin();
  const used = await measure(pidsOf(running), running.idle, () => sleep(idleSeconds * 1000));
  await running.statements?.show('idle');
  running.idle = { serve: used.serve / used.elapsed, postgres: used.postgres / used.elapsed };
}

const ms = ({ serveMs, postgresMs }: PartCost) => `${serveMs.toFixed(1)} + ${postgresMs.toFixed(1)} ms`;
const windowOf = (atMs: number) => Math.floor(atMs / 10_000) * 10_000;

async function benchLive(running: Running): Promise<PartCost> {
  const { bench, client, sample } = running;
  await fillLiveHour(bench, [...new Set(sample.map(({ siteId }) => siteId))]);
  client.beginRuns();
  const now = windowOf(Date.now());
  const used: Used[] = [];
  await running.statements?.begin();
  for (let i = 0; i < liveMinutes * liveOfMinute; i += 1) {
    await client.postLive(sample, now - i * 10_000, i % 3 === 0, async (requests) => {
      used.push(await measure(pidsOf(running), running.idle, requests));
    });
  }
  await running.statements?.show('live windows');
  return costOf('live windows', addUsed(used), liveMinutes * sample.length);
}

/** The last whole hour, or its last minutes. */
async function benchMinutes(running: Running): Promise<PartCost[]> {
  const { bench, client, sample, held, report } = running;
  const sensorMinutes = sample.length * minutes;
  const hour = Math.floor((Date.now() / 1000 - 180) / 3600) * 3600;
  const [diskBefore, logBefore] = [await readDisk(bench), await readLog(bench)];
  const used: Record<string, Used[]> = { receiving: [], applying: [], judging: [], 'ten minutes': [] };
  const take = async (part: keyof typeof used, work: () => Promise<void>) =>
    void used[part]!.push(await measure(pidsOf(running), running.idle, work));
  const wire = { sent: 0, received: 0 };
  let bodies = 0;
  await running.statements?.begin();
  for (let done = 0; done < minutes; done += minutesAtOnce) {
    const some = Array.from({ length: Math.min(minutesAtOnce, minutes - done) }, (_, i) =>
      client.makeUploads(sample, hour - (minutes - done - i) * 60),
    ).flat();
    bodies += some.reduce((sum, { body }) => sum + body.length, 0);
    await held.holdUploads();
    const before = client.bytes();
    await take('receiving', () => client.post(some));
    const after = client.bytes();
    wire.sent += after.sent - before.sent;
    wire.received += after.received - before.received;
    await take('applying', () => held.applyUploads());
    await take('judging', () => held.judgeMinutes());
    await take('ten minutes', () => held.makeTenMinutes());
  }
  await running.statements?.show('minutes');
  const rows = await countRows(bench);
  const hours = await measurePart(running, 'hours', sensorMinutes, () => held.makeHours());
  const log = (await readLog(bench)) - logBefore;
  report(
    `an upload: ${(bodies / sensorMinutes / 1024).toFixed(1)} KiB, on the wire ${(wire.sent / sensorMinutes / 1024).toFixed(1)} KiB and ${(wire.received / sensorMinutes / 1024).toFixed(1)} KiB back; ${(rows / sensorMinutes).toFixed(0)} rows; ${(log / sensorMinutes / 1024).toFixed(0)} KiB of write-ahead log a sensor and minute`,
  );
  describeDisk(diskBefore, await readDisk(bench), sensorMinutes, report);
  return [
    ...Object.entries(used).map(([part, all]) => costOf(part, addUsed(all), sensorMinutes)),
    hours,
    await benchReaders(running),
  ];
}

/** What ranks applications and notes their names every five minutes; in this process, which `serve` does it in else. */
async function benchReaders(running: Running): Promise<PartCost> {
  const { bench, held, sample } = running;
  const deps = {
    ...{ db: () => bench.database.db, facts: bench.monitor.facts },
    ...{ clock: systemClock, reporter: silentReporter },
  };
  await held.releaseReaders();
  const pids = { serve: process.pid, postgres: bench.pid() };
  const used = await measure(pids, { ...running.idle, serve: 0 }, async () => {
    for (const loop of [createRankingLoop(deps), createNamesLoop(deps)]) await loop.runOnce();
  });
  return costOf('rankings, names', used, readEveryMinutes * sample.length);
}

/** A minute of the whole fleet in one go. */
async function benchWhole(running: Running): Promise<void> {
  const { client, fleet, held, report } = running;
  const minute = Math.floor(Date.now() / 60_000) * 60 - 120;
  const uploads = client.makeUploads(fleet, minute);
  client.beginRuns();
  const now = windowOf(Date.now());
  await held.releaseRollUps();
  const steps: Used[] = [];
  const step = async (work: () => Promise<void>) => {
    steps.push(await measure(pidsOf(running), running.idle, work));
  };
  for (let i = 0; i < liveOfMinute; i += 1)
    await client.postLive(fleet, now + i * 10_000 - 60_000, i % 3 === 0, step);
  for (let i = 0; i < 2; i += 1) await step(() => client.fetchPlans(fleet));
  await step(() => client.post(uploads));
  const received = addUsed(steps).elapsed;
  await step(() => held.applyUploads());
  const used = addUsed(steps);
  const memory = readMemory(pidsOf(running));
  report(
    `a minute of the whole fleet in one go: received after ${received.toFixed(0)} s, applied after ${used.elapsed.toFixed(0)} s of 60; processor time ${used.serve.toFixed(1)} s of serve, ${used.postgres.toFixed(1)} s of PostgreSQL; memory: ${describeMemory(memory)}; load ${loadNow()}`,
  );
  await benchPages(running);
}
