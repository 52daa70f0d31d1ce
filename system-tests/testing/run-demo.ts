/**
 * The whole system as run by `npm start`, in its own data directory and on its own ports, with access to its processes,
 * its lab's control socket and counters, and its databases.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { TruthRow, WorldFacts } from '#lab/index.ts';
import { socketFolder } from '#service-kit/postgres/cluster.ts';
import { until } from '#service-kit/testing/until.ts';
import { claimPort } from './free-port.ts';
import { hasListened } from './sensor-deaths.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Login {
  email: string;
  password: string;
}

/** The data in `demo.json`. */
export interface DemoFile {
  operations_url: string;
  monitor_url: string;
  customer: Login;
  other_customer: Login;
  operator: Login;
  monitor_operator: Login;
  full_key: string;
  other_full_key: string;
  tenant_id: number;
}

/** A guest as reported by the lab's control socket. */
export interface LabGuest {
  name: string;
  /** Of the guest itself. */
  namespace: string;
  mac: string;
  power: string;
  addresses: { address: string }[];
}

export type ProgramName = 'sensor' | 'monitor' | 'operations';

export interface RunningDemo {
  dataDir: string;
  /** Of operations and of the monitor. */
  ports: Ports;
  file: DemoFile;
  /** Wall time at which everything was ready. */
  readyAtMs: number;
  /** The process id of a program or its PostgreSQL server; null while it restarts. */
  pidOf(program: ProgramName, what?: 'program' | 'postgres'): number | null;
  /** The whole log of a program. */
  readLog(program: ProgramName): string;
  /** The lab's counters; throws in a demo without a lab. */
  readTruth(): TruthRow[];
  /** Rows of a statement in a program's database. */
  query<T extends object>(program: 'monitor' | 'operations', sql: string, values?: unknown[]): Promise<T[]>;
  /** Guests from the lab's control socket; throws in a demo without a lab. */
  listGuests(): Promise<LabGuest[]>;
  /** Like `until`, but fails at once when the demo has ended. */
  until: typeof until;
  /** Ctrl-C. Resolves with the exit code when everything has ended. Deletes the data. */
  stop(): Promise<number | null>;
  /** Ctrl-C, like `stop`; the data stays. */
  leave(): Promise<number | null>;
  /** `kill -9` of the demo only, not of its programs. The data stays. */
  kill(): Promise<void>;
  /** Processes, namespaces and links that are still on the machine. */
  leftovers(): string[];
  /** Its output so far, and the last lines of each program's log. */
  output(): string;
}

/** Of operations and of the monitor. */
export type Ports = readonly [operations: number, monitor: number];

export interface DemoOptions {
  /** Use the simulated hypervisor and the recording, even if a lab is possible. */
  isSimulated?: boolean;
  /** Let the sensor scan ports, as it does if not given. */
  scansPorts?: boolean;
  /** A killed demo, or one that was left: start again on its data and ports. */
  after?: RunningDemo;
  /** The checkout whose code runs; this one if not given. */
  checkout?: string;
}

/** Starts the demo, on an empty data directory or after an earlier one, and waits until it is ready. */
export async function runDemo(options: DemoOptions = {}): Promise<RunningDemo> {
  // Its databases are created for each test, and a killed program's files are the same in memory.
  const folder = process.env.SVC_TEST_MEMORY_DIR ?? tmpdir();
  const dataDir = options.after?.dataDir ?? mkdtempSync(join(folder, 'svc-system-'));
  const ports: Ports = options.after?.ports ?? [await claimPort(), await claimPort()];
  const child = spawnDemo(options, dataDir, ports);
  const said: Buffer[] = [];
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (piece: Buffer) => said.push(piece));
  const output = () => Buffer.concat(said).toString() + readLogEnds(dataDir);
  const stop = async () => {
    const code = await endDemo(child);
    rmSync(dataDir, { recursive: true, force: true });
    return code;
  };
  try {
    const isReady = () =>
      existsSync(join(dataDir, 'demo.json')) && /Ready in/.test(Buffer.concat(said).toString());
    await until(
      'the demo is ready',
      150_000,
      isReady,
      () => hasEnded(child) && `the demo ended:\n${output()}`,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  // The demo is ready for people before the sensor has opened its captures; tests need every packet counted.
  const sensorLog = join(dataDir, 'logs', 'sensor.log');
  const listens = () => options.isSimulated === true || hasListened(readFileSync(sensorLog, 'utf8'));
  await until('the sensor listens', 60_000, listens, () => hasEnded(child) && `the demo ended:\n${output()}`);
  const file = readJson<DemoFile>(join(dataDir, 'demo.json'));
  const world = options.isSimulated ? null : readJson<WorldFacts>(join(dataDir, 'lab', 'world.json'));
  return {
    dataDir,
    ports,
    file,
    readyAtMs: Date.now(),
    pidOf: (program, what = 'program') => {
      return what === 'program' ? findProgram(dataDir, program) : readPostmaster(dataDir, program);
    },
    readLog: (program) => readFileSync(join(dataDir, 'logs', `${program}.log`), 'utf8'),
    readTruth: () => readTruth(world!.truth_ledger),
    query: (program, sql, values) => query(dataDir, program, sql, values),
    listGuests: async () => {
      const body = await getOverSocket(world!.control_socket, '/guests');
      return (JSON.parse(body) as { guests: LabGuest[] }).guests;
    },
    until: (what, patienceMs, look) => {
      return until(what, patienceMs, look, () => hasEnded(child) && `the demo ended:\n${output()}`);
    },
    stop,
    leave: () => endDemo(child),
    async kill() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    leftovers: () => findLeftovers(dataDir, world),
    output,
  };
}

function spawnDemo(
  { checkout = root, isSimulated = false, scansPorts = true }: DemoOptions,
  dataDir: string,
  [operationsPort, monitorPort]: Ports,
): ChildProcess {
  return spawn(join(checkout, 'svc'), isSimulated ? ['demo', '--simulated'] : ['demo'], {
    cwd: checkout,
    env: {
      ...process.env,
      SVC_DATA_DIR: dataDir,
      SVC_OPERATIONS_PORT: String(operationsPort),
      SVC_MONITOR_PORT: String(monitorPort),
      ...(!scansPorts && { SVC_SENSOR_PORT_SCANS: '0' }),
      // A history of millions of rows would load beside what is tested.
      SVC_DEMO_HISTORY: '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function findLeftovers(dataDir: string, world: WorldFacts | null): string[] {
  const found = findProcesses(dataDir).map(({ pid, argv }) => `process ${pid}: ${argv.join(' ')}`);
  if (!world) return found;
  for (const folder of ['/run/netns', '/sys/class/net']) {
    if (!existsSync(folder)) continue;
    found.push(
      ...readdirSync(folder).filter((name) => /^svcm?-/.test(name) && name.includes(`-${world.world}`)),
    );
  }
  return found;
}

function readLogEnds(dataDir: string): string {
  const folder = join(dataDir, 'logs');
  if (!existsSync(folder)) return '';
  const ends = readdirSync(folder).map((name) => {
    const lines = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
    return `\n--- ${name}\n${lines.slice(-12).join('\n')}\n`;
  });
  return ends.join('');
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function endDemo(child: ChildProcess): Promise<number | null> {
  if (hasEnded(child)) return child.exitCode;
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.kill('SIGINT');
  const [code] = await exited;
  return code;
}

/** The process with this data directory that runs `svc.ts PROGRAM`. */
function findProgram(dataDir: string, program: ProgramName): number | null {
  const found = findProcesses(dataDir).find(({ argv }) => {
    const at = argv.findIndex((argument) => argument.endsWith('/svc.ts'));
    return at > 0 && argv[at + 1] === program && argv[0] !== 'ip';
  });
  return found?.pid ?? null;
}

/** Every process with this data directory in its environment. */
function findProcesses(dataDir: string): { pid: number; argv: string[] }[] {
  const found: { pid: number; argv: string[] }[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const environment = readFileSync(`/proc/${entry}/environ`, 'utf8').split('\0');
      if (!environment.includes(`SVC_DATA_DIR=${dataDir}`)) continue;
      found.push({ pid: Number(entry), argv: readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0') });
    } catch {
      // It ended meanwhile, or belongs to another user.
    }
  }
  return found;
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}

/** A killed server leaves its file behind, and its process id may have been reused. */
function readPostmaster(dataDir: string, program: ProgramName): number | null {
  try {
    const folder = join(dataDir, program, 'postgres', 'data');
    const pid = Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0]);
    const isIt = readFileSync(`/proc/${pid}/comm`, 'utf8') === 'postgres\n';
    return isIt && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(folder) ? pid : null;
  } catch {
    return null;
  }
}

function readTruth(ledger: string): TruthRow[] {
  if (!existsSync(ledger)) return [];
  const lines = readFileSync(ledger, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as TruthRow);
}

async function query<T extends object>(
  dataDir: string,
  program: 'monitor' | 'operations',
  sql: string,
  values: unknown[] = [],
): Promise<T[]> {
  const host = socketFolder(join(dataDir, program, 'postgres'));
  const client = new pg.Client({ host, user: 'svc', database: program });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows as T[];
  } finally {
    await client.end();
  }
}

function getOverSocket(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path }, (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    call.on('error', reject);
    call.end();
  });
}
