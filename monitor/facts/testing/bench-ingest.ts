/**
 * The whole way of uploads: HTTP with real protobuf and zstd into a real monitor, its inbox, the facts. Beside it, in the
 * same run, a bare COPY of the very same rows into the same partitioned and indexed tables.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type BenchDatabase, startBenchDatabase, startBenchServer } from './bench-monitor.ts';
import { type Random, seededRandom } from './random-uploads.ts';

const sensors = 1000;
const sites = 20;
const hostsOfUpload = 50;
const usageOfUpload = 200;
/** Minutes of the fleet that are sent as fast as they go, in each round. */
const minutesAtOnce = 2;
/** Each compares the whole way with COPY at once, since a machine's speed changes from minute to minute. */
const rounds = 3;
/** Minutes of the fleet that are sent in their time. */
const minutesPaced = Number(process.env.SVC_BENCH_PACED_MINUTES ?? 2);
const connections = 24;
const tables = ['host_minutes', 'application_facts', 'endpoint_pairs'] as const;

interface FleetSensor {
  credential: string;
  index: number;
  spoolId: string;
  sequence: number;
}

export async function benchIngest(report: (line: string) => void): Promise<void> {
  await using bench = await startBenchDatabase();
  const fleet = await enrolFleet(bench);
  const random = seededRandom(1);
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

async function enrolFleet({ monitor, database }: BenchDatabase): Promise<FleetSensor[]> {
  const fleet: FleetSensor[] = [];
  for (let i = 0; i < sites; i += 1) {
    const site = await monitor.sites.create(systemActor, `Site ${i + 1}`);
    for (let k = 0; k < sensors / sites; k += 1) {
      const { token } = await monitor.sensors.createToken(systemActor, site.id);
      const index = fleet.length;
      const host = `node-${index + 1}`;
      const made = await monitor.sensors.enrol({
        token,
        host_name: host,
        node: host,
        sensor_version: '0.1.24',
      });
      fleet.push({ credential: made!.credential, index, spoolId: randomUUID(), sequence: 0 });
    }
  }
  await database.pool.query('analyze');
  return fleet;
}

/** One upload of every sensor for this minute. */
function makeMinute(fleet: FleetSensor[], random: Random, minute: number) {
  return fleet.map((sensor) => {
    sensor.sequence += 1;
    const upload = {
      spoolId: sensor.spoolId,
      sequence: sensor.sequence,
      sensorVersion: '0.1.24',
      minutes: [makeCaptureMinute(sensor.index, random, minute)],
      gaps: [],
    };
    return { credential: sensor.credential, body: compressUpload(encodeUpload(upload)) };
  });
}

function makeCaptureMinute(index: number, random: Random, minute: number): TelemetryMinute {
  const local = (i: number) => `10.${index >> 8}.${index & 255}.${i + 1}`;
  const hosts = Array.from({ length: hostsOfUpload }, (_, i) => ({
    address: local(i),
    isLocal: true,
    rxBytes: random(1_000_000),
    txBytes: random(1_000_000),
    packets: random(5000),
    deviceKey: `br0|02:00:${hex(index >> 8)}:${hex(index)}:00:${hex(i)}`,
  }));
  const usage = Array.from({ length: usageOfUpload }, (_, i): TelemetryUsageRow => {
    const name = random(1500);
    return {
      client: local(i % hostsOfUpload),
      server: `198.${18 + (name >> 12)}.${(name >> 4) & 255}.${(name & 15) * 8 + random(4)}`,
      protocol: 6,
      serverPort: 443,
      direction: 'outbound',
      name: `service-${name}.example`,
      evidence: 'tls_sni',
      clientBytes: random(100_000),
      serverBytes: random(1_000_000),
      packets: 20 + random(900),
      clientLastSentMs: minute * 1000 + random(60_000),
      serverLastSentMs: minute * 1000 + random(60_000),
    };
  });
  const packets = 100_000 + random(50_000);
  const totals = { packets, ipPackets: packets, ipBytes: packets * 700, nonIpPackets: 0, parserDropped: 0 };
  return {
    minute,
    capture: 'eth0',
    role: 'uplink',
    observedMs: 60_000,
    totals: { ...totals, kernelDropped: 0, detailTruncated: 0 },
    hosts,
    usage,
  };
}

const hex = (value: number) => (value & 255).toString(16).padStart(2, '0');

async function sendAll(
  server: { post(credential: string, body: Uint8Array): Promise<void> },
  uploads: readonly { credential: string; body: Uint8Array }[],
): Promise<void> {
  let next = 0;
  const sender = async () => {
    for (let i = next++; i < uploads.length; i = next++)
      await server.post(uploads[i]!.credential, uploads[i]!.body);
  };
  await Promise.all(Array.from({ length: connections }, sender));
}

async function countPending({ database }: BenchDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    "select count(*)::int as n from inbox_uploads where state = 'pending'",
  );
  return rows[0]!.n;
}

async function untilApplied(bench: BenchDatabase): Promise<void> {
  while ((await countPending(bench)) > 0) await new Promise((wake) => setTimeout(wake, 50));
}

async function countRows({ database }: BenchDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    `select ${tables.map((table) => `(select count(*) from ${table})`).join(' + ')} as n`,
  );
  return Number(rows[0]!.n);
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
