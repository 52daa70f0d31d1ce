/**
 * The whole way of uploads: HTTP with real protobuf and zstd into a real monitor, its inbox, the facts. Beside it, in the
 * same run, a bare COPY of the very same rows into the same partitioned and indexed tables.
 */
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import {
  countPending,
  countRows,
  enrolFleet,
  type FleetSensor,
  hostsOfUpload,
  makeMinute,
  sendAll,
  factTables as tables,
  untilApplied,
  usageOfUpload,
} from './bench-fleet.ts';
import { type BenchDatabase, startBenchDatabase, startBenchServer } from './bench-monitor.ts';
import { type Random, seededBelow } from './random-uploads.ts';

const sensors = 1000;
const sites = 20;
/** Minutes of the fleet that are sent as fast as they go, in each round. */
const minutesAtOnce = 2;
/** Each compares the whole way with COPY at once, since a machine's speed changes from minute to minute. */
const rounds = 3;
/** Minutes of the fleet that are sent in their time. */
const minutesPaced = Number(process.env.SVC_BENCH_PACED_MINUTES ?? 2);

export async function benchIngest(report: (line: string) => void): Promise<void> {
  await using bench = await startBenchDatabase();
  const fleet = await enrolFleet(bench, { sensors, sites, firstOctet: 10 });
  const random = seededBelow(1);
  const start = Math.floor(Date.now() / 60_000) * 60 - 600;
  const makeOne = (i: number) => makeMinute(fleet, random, start + i * 60);
  await using server = await startBenchServer(bench);
  const first = makeOne(0);
  const bytes = first.reduce((sum, one) => sum + one.body.length, 0) / sensors;
  report(
    `${sensors} sensors on ${sites} sites; an upload has ${hostsOfUpload} hosts and ${usageOfUpload} application rows, ${(bytes / 1024).toFixed(1)} KiB of zstd`,
  );
  await sendAll(server, first);
  await untilApplied(bench);
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const made = Array.from({ length: minutesAtOnce }, (_, i) => makeOne(1 + round * minutesAtOnce + i));
    const rate = await sendAtOnce(bench, server, made, report);
    ratios.push(rate / (await copyAgain(bench, report)));
  }
  const middle = ratios.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!;
  report(
    `ratio of the whole way to bare COPY: ${middle.toFixed(2)} (median of ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}; target 0.59)`,
  );
  await pace(bench, server, fleet, random, report);
}

/** Sends minutes of the fleet as fast as they go; returns the rows that the facts gained each second. */
async function sendAtOnce(
  bench: BenchDatabase,
  server: { post(credential: string, body: Uint8Array): Promise<void> },
  minutes: ReturnType<typeof makeMinute>[],
  report: (line: string) => void,
): Promise<number> {
  const rowsBefore = await countRows(bench);
  const begun = performance.now();
  for (const minute of minutes) await sendAll(server, minute);
  const received = (performance.now() - begun) / 1000;
  await untilApplied(bench);
  const whole = (performance.now() - begun) / 1000;
  const rows = (await countRows(bench)) - rowsBefore;
  report(
    `whole way: ${minutes.length * sensors} uploads, ${rows} rows in ${whole.toFixed(1)} s (received after ${received.toFixed(1)} s): ${Math.round(rows / whole)} rows/s; a minute of the fleet takes ${(whole / minutes.length).toFixed(1)} s of its 60`,
  );
  return rows / whole;
}

/** Sends whole minutes of the fleet evenly over their time and tells what is left undone at each one's end. */
async function pace(
  bench: BenchDatabase,
  server: { post(credential: string, body: Uint8Array): Promise<void> },
  fleet: FleetSensor[],
  random: Random,
  report: (line: string) => void,
): Promise<void> {
  const start = Math.floor(Date.now() / 60_000) * 60 - 120;
  const minutes = Array.from({ length: minutesPaced }, (_, i) => makeMinute(fleet, random, start + i * 60));
  const begun = performance.now();
  for (const [i, uploads] of minutes.entries()) {
    const sent: Promise<void>[] = [];
    let slowest = 0;
    for (const [k, { credential, body }] of uploads.entries()) {
      const due = begun + i * 60_000 + k * (60_000 / sensors);
      const wait = due - performance.now();
      if (wait > 1) await new Promise((wake) => setTimeout(wake, wait));
      const at = performance.now();
      sent.push(
        server.post(credential, body).then(() => {
          slowest = Math.max(slowest, performance.now() - at);
        }),
      );
    }
    await Promise.all(sent);
    const pending = await countPending(bench);
    report(
      `sustained, minute ${i + 1}: ${pending} of ${sensors} uploads not yet applied at its end; slowest receipt ${Math.round(slowest)} ms`,
    );
  }
}

/** Takes the rows out, empties the tables, and puts them in again with one bare COPY a table. */
async function copyAgain(bench: BenchDatabase, report: (line: string) => void): Promise<number> {
  // A checkpoint is a superuser's.
  const client = new pg.Client({ connectionString: bench.adminUrl });
  await client.connect();
  const total = await countRows(bench);
  let seconds = 0;
  for (const table of tables) {
    const chunks: Buffer[] = [];
    for await (const chunk of client.query(copyTo(`copy (select * from ${table}) to stdout (format binary)`)))
      chunks.push(chunk as Buffer);
    await client.query(`truncate ${table}`);
    await client.query('checkpoint');
    const begun = performance.now();
    const stream = client.query(copyFrom(`copy ${table} from stdin (format binary)`));
    await new Promise<void>((resolve, reject) => {
      stream.on('error', reject);
      stream.on('finish', () => resolve());
      stream.end(Buffer.concat(chunks));
    });
    seconds += (performance.now() - begun) / 1000;
  }
  await client.end();
  report(
    `bare COPY of the same rows: ${total} rows in ${seconds.toFixed(1)} s: ${Math.round(total / seconds)} rows/s`,
  );
  return total / seconds;
}
