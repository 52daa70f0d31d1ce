/**
 * The database ends sessions, stops at once, is killed, has no connection left, fails transactions that met, and runs
 * out of disk. Nothing is lost or doubled, no upload is given up for it, reads are answered or refused with 503, and all
 * continues without manual action.
 */

import pg from 'pg';
import { seededRandom } from '#common/random/index.ts';
import { readConfig } from '#monitor/config.ts';
import { createMonitorServer } from '#monitor/server.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createFleet, type Fleet } from './ingest-fleet.ts';
import { connectionsMax, type OwnServer, startOwnServer } from './own-server.ts';

export const name = 'inbox-database-faults';

const faults = [
  'end_sessions',
  'stop',
  'kill',
  'crowd_out',
  'serialization',
  'deadlock',
  'disk_full',
] as const;
type Fault = (typeof faults)[number];

export interface DatabaseFaultOptions {
  /** Faults. */
  n: number;
  seed: number;
  report(line: string): void;
  sensors?: number;
  workers?: number;
  /** The faults in turn instead of drawn ones. */
  inTurn?: readonly Fault[];
}

export async function prove(options: DatabaseFaultOptions) {
  const { offences, counts, uploads, answers } = await breakDatabase(options);
  for (const offence of offences) options.report(offence);
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`);
  return {
    claim: `${uploads} uploads, database broken (${kinds.join(', ')}): 0 lost, 0 doubled; ${answers} reads answered or 503`,
    tried: options.n,
    failures: offences.length,
  };
}

interface FaultResult {
  offences: string[];
  counts: Record<string, number>;
  uploads: number;
  answers: number;
}

/** Breaks the database `n` times while uploads come in and plans are read. */
export async function breakDatabase(options: DatabaseFaultOptions): Promise<FaultResult> {
  const { n, sensors = 40, workers = 3 } = options;
  const random = seededRandom(options.seed);
  // Its own generator: the fleet draws at times that depend on the machine.
  const drawFault = seededRandom(options.seed + 1);
  await using server = await startOwnServer();
  const own = createPool(server.url, 8);
  const result: FaultResult = { offences: [], counts: {}, uploads: 0, answers: 0 };
  try {
    await using fleet = await createFleet({
      database: own,
      workerUrl: server.url,
      sensors,
      workers,
      leaseSeconds: 2,
      random,
    });
    let isOver = false;
    const sending = (async () => {
      while (!isOver) {
        await fleet.send(40);
        result.uploads += 40;
      }
    })();
    const reading = readPlans(fleet, () => isOver, result);
    try {
      for (let done = 1; done <= n; done += 1) {
        const fault = options.inTurn
          ? options.inTurn[(done - 1) % options.inTurn.length]!
          : faults[Math.floor(drawFault() * faults.length)]!;
        if (fault === 'disk_full' && !server.hasSmallDisk) continue;
        await inject(fault, server);
        result.counts[fault] = (result.counts[fault] ?? 0) + 1;
        if (done % 25 === 0) options.report(`${done} faults, ${result.uploads} uploads`);
        await new Promise((wake) => setTimeout(wake, random() * 400));
      }
    } finally {
      isOver = true;
      await Promise.all([sending, reading]);
    }
    if (!(await fleet.settle(300_000))) result.offences.push('uploads were left unapplied');
    result.offences.push(...(await fleet.judge()));
    return result;
  } finally {
    await own.db.destroy();
  }
}

/** A sensor asks for its plan all the time; an answer is a plan or 503, never another fault. */
async function readPlans(fleet: Fleet, isOver: () => boolean, result: FaultResult): Promise<void> {
  const config = readConfig({ SVC_MONITOR_PORT: '0', SVC_LOG_LEVEL: 'error' });
  const http = await createMonitorServer(config, fleet.monitor);
  await http.start();
  const { credential } = fleet.sensors[0]!;
  try {
    while (!isOver()) {
      const answer = await fetch(`${http.url}/agent/v1/plan`, {
        headers: { authorization: `Bearer ${credential}` },
      });
      await answer.arrayBuffer();
      result.answers += 1;
      if (answer.status !== 200 && answer.status !== 503)
        result.offences.push(`a plan was answered with ${answer.status}`);
      await new Promise((wake) => setTimeout(wake, 50));
    }
  } finally {
    await http.stop();
  }
}

async function inject(fault: Fault, server: OwnServer): Promise<void> {
  switch (fault) {
    case 'kill':
      return server.signal('SIGKILL');
    case 'stop':
      return server.signal('SIGQUIT');
    case 'disk_full':
      server.fillDisk();
      await new Promise((wake) => setTimeout(wake, 600));
      return server.freeDisk();
    case 'crowd_out':
      return crowdOut(server.url);
    case 'end_sessions':
      return withClient(server.url, async (client) => {
        await client.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        );
      });
    case 'serialization':
      return withClient(server.url, async (client) => {
        await client.query('update fault_flags set is_up = true');
        await new Promise((wake) => setTimeout(wake, 300));
        await client.query('update fault_flags set is_up = false');
      });
    case 'deadlock':
      return withClient(server.url, deadlock);
  }
}

/** Locks uploads first and leases then, the other way round than workers do. */
async function deadlock(client: pg.Client): Promise<void> {
  await client.query("begin; set local deadlock_timeout = '100ms'");
  await client.query("select 1 from inbox_uploads where state = 'pending' order by id for update");
  await new Promise((wake) => setTimeout(wake, 50));
  await client.query('select 1 from leases for update').catch(() => {});
  await client.query('rollback');
}

async function crowdOut(url: string): Promise<void> {
  const clients: pg.Client[] = [];
  for (let i = 0; i < connectionsMax; i += 1) {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      clients.push(client);
    } catch {
      break;
    }
  }
  // Those who wait for a connection get none, and those who had one lose it.
  await clients[0]
    ?.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'inbox %'",
    )
    .catch(() => {});
  await new Promise((wake) => setTimeout(wake, 400));
  await Promise.all(clients.map((client) => client.end().catch(() => {})));
}

/** One client for one fault; a server that is still coming back is waited for. */
async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on('error', () => {});
    try {
      await client.connect();
      await work(client);
      return;
    } catch (error) {
      if (tries >= 40) throw error;
      await new Promise((wake) => setTimeout(wake, 250));
    } finally {
      await client.end().catch(() => {});
    }
  }
}
