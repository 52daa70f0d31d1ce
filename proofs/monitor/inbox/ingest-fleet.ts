/**
 * Sensors that send, workers in processes of their own that apply, and what must be true afterwards.
 *
 * Every sensor has an address of its own and knows what it sent: in the end that address has these bytes, packets and
 * applications, no more and no less; every upload is applied and none rejected; each redelivery was called a duplicate.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { compose, type Monitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import type { createPool } from '#service-kit/postgres/database.ts';
import type { WorkerOrders } from './ingest-worker.ts';

const childPath = fileURLToPath(new URL('ingest-worker.ts', import.meta.url));
/** Minutes over which the uploads of a sensor are spread, so that most add to what is there. */
const minutesOfSensor = 30;
/** Share of the uploads that are delivered a second time. */
const repeatedShare = 0.03;
/** Uploads that wait for being applied before the sensors pause: a backlog shows nothing that a part of it does not. */
const backlogMax = 3_000;

export interface FleetOptions {
  /** What the monitor itself uses: an open pool. */
  database: Pick<ReturnType<typeof createPool>, 'db' | 'pool'>;
  /** What its workers use. */
  workerUrl: string;
  sensors: number;
  workers: number;
  leaseSeconds: number;
  answerMs?: number;
  random: () => number;
  /** ClickHouse with the facts; PostgreSQL without it. */
  factsUrl?: string;
}

export interface Worker {
  readonly pid: number;
  readonly child: ChildProcess;
}

export interface Fleet extends AsyncDisposable {
  readonly monitor: Monitor;
  readonly workers: readonly Worker[];
  readonly sensors: readonly FleetSensor[];
  /** Sends so many uploads of random sensors; each is tried until it is receipted, as a sensor would. */
  send(count: number): Promise<void>;
  /** Kills a worker at once and starts another in its place, which takes a moment until it works. */
  replace(worker: Worker): void;
  /** Waits until nothing is left to apply; false when that takes too long. */
  settle(timeoutMs: number): Promise<boolean>;
  /** What is wrong now that all has settled, one sentence each. */
  judge(): Promise<string[]>;
}

export interface FleetSensor {
  sensor: EnrolledSensor;
  credential: string;
  address: string;
  spool: ReturnType<typeof createSpool>;
  sent: { uploads: number; rx: number; tx: number; packets: number; client: number; server: number };
}

export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { db, pool } = options.database;
  const database = { name: 'database', db, pool, reader: db, start: async () => {}, stop: async () => {} };
  const { factsUrl = '' } = options;
  const monitor = compose(readConfig({ SVC_FACTS_URL: factsUrl }), { database, reporter: silentReporter });
  if (factsUrl) await monitor.factEngine.part.start();
  const sensors = await enrol(monitor, options.sensors);
  // Not long ago, and wholly within a day.
  const firstMinute = Math.floor((Date.now() - 3_600_000) / 60_000) * 60;
  const workers: Worker[] = [];
  let backlog = 0;

  async function start(place: number): Promise<void> {
    const { workerUrl: databaseUrl, leaseSeconds, answerMs = 20_000 } = options;
    const orders: WorkerOrders = { databaseUrl, leaseSeconds, answerMs, factsUrl };
    const child = spawn(process.execPath, [childPath, JSON.stringify(orders)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    workers[place] = { pid: child.pid!, child };
    await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')]);
  }

  async function deliver(of: FleetSensor, upload: TelemetryUpload): Promise<void> {
    const body = compressUpload(encodeUpload(upload));
    let left = options.random() < repeatedShare ? 2 : 1;
    for (let tries = 0; left > 0; tries += 1) {
      try {
        await monitor.inbox.receive(of.sensor, body, 'zstd');
        left -= 1;
      } catch (error) {
        // As a sensor does: the same bytes again until there is a receipt.
        if (tries > 600) throw error;
        await new Promise((wake) => setTimeout(wake, 50));
      }
    }
  }

  function next(): { of: FleetSensor; upload: TelemetryUpload } {
    const of = sensors[Math.floor(options.random() * sensors.length)]!;
    const { sent } = of;
    const rx = 1 + Math.floor(options.random() * 1_000_000);
    const tx = 1 + Math.floor(options.random() * 1_000_000);
    const minute = firstMinute + (sent.uploads % minutesOfSensor) * 60;
    const usage = [usageRow({ client: of.address, clientBytes: tx, serverBytes: rx })];
    const upload = of.spool.upload([
      captureMinute({ minute, observedMs: 1_000, hosts: [host(of.address, rx, tx)], usage }),
    ]);
    sent.uploads += 1;
    sent.rx += rx;
    sent.tx += tx;
    sent.client += tx;
    sent.server += rx;
    return { of, upload };
  }

  async function countPending(): Promise<number> {
    const { rows } = await pool.query("select count(*)::int as n from inbox_uploads where state = 'pending'");
    return rows[0].n;
  }

  for (let place = 0; place < options.workers; place += 1) await start(place);
  return {
    monitor,
    workers,
    sensors,
    async send(count) {
      for (let left = count; left > 0; ) {
        const now = Math.min(left, 100);
        left -= now;
        backlog += now;
        await Promise.all(
          Array.from({ length: now }, () => {
            const { of, upload } = next();
            return deliver(of, upload);
          }),
        );
        while (backlog > backlogMax) {
          backlog = await countPending().catch(() => backlog);
          if (backlog > backlogMax) await new Promise((wake) => setTimeout(wake, 100));
        }
      }
    },
    replace(worker) {
      worker.child.kill('SIGKILL');
      void start(workers.indexOf(worker));
    },
    async settle(timeoutMs) {
      const deadline = Date.now() + timeoutMs;
      while (Date.now() < deadline) {
        if ((await countPending().catch(() => 1)) === 0) return true;
        await new Promise((wake) => setTimeout(wake, 100));
      }
      return false;
    },
    async judge() {
      await monitor.facts.rollUp('none');
      return [...(await judgeStates(pool, sensors)), ...(await judgeFacts(monitor, sensors, firstMinute))];
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of workers) child.kill('SIGKILL');
      await Promise.all(
        workers.map(({ child }) => (child.exitCode ?? child.signalCode) !== null || once(child, 'exit')),
      );
    },
  };
}

async function enrol(monitor: Monitor, count: number): Promise<FleetSensor[]> {
  const site = await monitor.sites.create(systemActor, 'Fleet');
  await monitor.sites.setLocalCidrs(systemActor, site.id, ['198.18.0.0/16']);
  const sensors: FleetSensor[] = [];
  for (let i = 0; i < count; i += 1) {
    const name = `node-${i}`;
    const { token } = await monitor.sensors.createToken(systemActor, site.id);
    const made = await monitor.sensors.enrol({ token, host_name: name, node: name, sensor_version: '0.1.0' });
    const credential = made!.credential;
    sensors.push({
      sensor: { id: made!.sensor_id, siteId: site.id, hostName: name, node: name },
      credential,
      address: `198.18.${i >> 8}.${i & 255}`,
      spool: createSpool(),
      sent: { uploads: 0, rx: 0, tx: 0, packets: 0, client: 0, server: 0 },
    });
  }
  return sensors;
}

async function judgeStates(
  pool: FleetOptions['database']['pool'],
  sensors: readonly FleetSensor[],
): Promise<string[]> {
  const { rows } = await pool.query('select state, count(*)::int as n from inbox_uploads group by state');
  const sent = sensors.reduce((sum, one) => sum + one.sent.uploads, 0);
  const found = Object.fromEntries(rows.map((row) => [row.state, row.n]));
  return found.applied === sent && rows.length <= 1
    ? []
    : [`${sent} uploads were sent, and the inbox says ${JSON.stringify(found)}`];
}

async function judgeFacts(
  monitor: Monitor,
  sensors: readonly FleetSensor[],
  firstMinute: number,
): Promise<string[]> {
  const offences: string[] = [];
  const toMinute = firstMinute + minutesOfSensor * 60;
  for (const { sensor, address, sent } of sensors) {
    const minutes = await monitor.traffic.readAddressMinutes(sensor.siteId, address, firstMinute, toMinute);
    const found = { rx: 0, tx: 0 };
    for (const minute of minutes) {
      if (minute.isGap) continue;
      found.rx += minute.rxBytes;
      found.tx += minute.txBytes;
    }
    if (found.rx !== sent.rx || found.tx !== sent.tx)
      offences.push(`${address} has ${found.rx}/${found.tx} bytes instead of ${sent.rx}/${sent.tx}`);
    const uses = await monitor.applications.readAddressApplications(
      sensor.siteId,
      address,
      firstMinute,
      toMinute,
    );
    const inbound = uses.reduce((sum, use) => sum + use.inboundBytes, 0);
    const outbound = uses.reduce((sum, use) => sum + use.outboundBytes, 0);
    if (inbound !== sent.server || outbound !== sent.client)
      offences.push(
        `${address} used ${inbound}/${outbound} bytes of applications instead of ${sent.server}/${sent.client}`,
      );
  }
  return offences;
}
