/** A monitor for measuring: PostgreSQL with every safety on in a folder of its own, and `serve` as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { createDatabase, createEmbeddedPostgres } from '#service-kit/postgres/index.ts';

const main = fileURLToPath(new URL('../../../svc.ts', import.meta.url));
const migrations = fileURLToPath(new URL('../../migrations', import.meta.url));

export type BenchDatabase = Awaited<ReturnType<typeof startBenchDatabase>>;

/** `kept`: a folder that stays for the next run. `serverSettings`: further ones of PostgreSQL. */
export async function startBenchDatabase(
  kept?: string,
  serverSettings: Readonly<Record<string, string>> = {},
) {
  const folder = kept ?? (await mkdtemp(join(tmpdir(), 'svc-bench-monitor-')));
  const postgres = createEmbeddedPostgres({
    dir: join(folder, 'postgres'),
    databaseName: 'monitor',
    urlSetting: 'SVC_MONITOR_DATABASE_URL',
    reporter: silentReporter,
    serverSettings,
  });
  await postgres.start();
  const database = createDatabase({
    program: 'monitor',
    urlSetting: 'SVC_MONITOR_DATABASE_URL',
    url: postgres.url,
    programDir: folder,
    migrations,
    reporter: silentReporter,
  });
  await database.start();
  const monitor = compose(readConfig({ SVC_DATA_DIR: folder, SVC_LOG_LEVEL: 'error' }), { database });
  return {
    url: postgres.url,
    /** As the superuser of its PostgreSQL. */
    adminUrl: postgres.adminUrl,
    folder,
    /** Process of the running PostgreSQL. */
    pid: () =>
      Number(readFileSync(join(folder, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]),
    database,
    /** The features on that database, without loops. */
    monitor,
    /** Stops the server in order and starts it again: its own cache is empty afterwards. */
    async restart() {
      await database.stop();
      await postgres.stop();
      await postgres.start();
      await database.start();
    },
    async [Symbol.asyncDispose]() {
      await database.stop();
      await postgres.stop();
      if (kept === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Headers of a browser in which an operator is signed in. */
export async function signIn({ monitor }: BenchDatabase): Promise<{ cookie: string; accept: string }> {
  const { id } = await monitor.operators.add({
    email: `bench-${Date.now()}@monitor.example`,
    name: 'Bench',
    password: 'a password of sufficient length',
    role: 'viewer',
  });
  return { cookie: (await monitor.sessions.start(id)).split(';')[0]!, accept: 'text/html' };
}

export type BenchServer = Awaited<ReturnType<typeof startBenchServer>>;

export interface BenchAnswer {
  status: number;
  /** From the request to the last byte. */
  ms: number;
  /** As it was sent. */
  bytes: number;
  text: string;
}

/** `./svc monitor serve` on this database. `settings`: further ones of the program. */
export async function startBenchServer(
  bench: BenchDatabase,
  settings: Readonly<Record<string, string>> = {},
) {
  const port = await freePort();
  const environment = {
    ...process.env,
    SVC_DATA_DIR: bench.folder,
    SVC_MONITOR_DATABASE_URL: bench.url,
    SVC_MONITOR_PORT: String(port),
    SVC_LOG_LEVEL: 'error',
    SVC_APPLICATION_RANKING: '0',
    ...settings,
  };
  const child = spawn(process.execPath, [main, 'monitor', 'serve'], {
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const server = {
    pid: child.pid!,
    port,
    /** Hands a body in; throws unless it was accepted. */
    post: (credential: string, body: Uint8Array) => postUpload(agent, port, credential, body),
    /** Asks for a path as a browser does, compressed. */
    get: (path: string, headers: Readonly<Record<string, string>>) => getPath(agent, port, path, headers),
    async [Symbol.asyncDispose]() {
      agent.destroy();
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    },
  };
  await waitForPort(port, child);
  return server;
}

function postUpload(agent: Agent, port: number, credential: string, body: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
      'content-length': body.length,
    };
    const sent = request({ agent, port, method: 'POST', path: '/agent/v1/telemetry', headers }, (answer) => {
      answer.resume();
      answer.on('end', () =>
        answer.statusCode === 200
          ? resolve()
          : reject(new Error(`the monitor answered ${answer.statusCode}`)),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

function getPath(
  agent: Agent,
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<BenchAnswer> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, port, path, headers: { ...headers, 'accept-encoding': 'gzip' } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const body = Buffer.concat(chunks);
          const isPacked = answer.headers['content-encoding'] === 'gzip';
          resolve({
            status: answer.statusCode!,
            ms: performance.now() - begun,
            bytes: body.length,
            text: (isPacked ? gunzipSync(body) : body).toString(),
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

async function freePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

async function waitForPort(port: number, child: ReturnType<typeof spawn>): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (child.exitCode !== null) throw new Error('the monitor ended before it was ready');
    const answers = await new Promise<boolean>((resolve) => {
      const sent = request({ port, path: '/sign-in' }, (answer) => {
        answer.resume();
        resolve(true);
      });
      sent.on('error', () => resolve(false));
      sent.end();
    });
    if (answers) return;
    await new Promise((wake) => setTimeout(wake, 100));
  }
  throw new Error('the monitor did not become ready');
}
