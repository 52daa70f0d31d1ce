/**
 * The real PostgreSQL out of an npm package, kept as a child of the program that uses it.
 *
 * It runs as an unprivileged user even where we are root (PostgreSQL refuses root), listens on a Unix socket only, lets
 * only the program's own user in, is brought back when it dies, and takes over from an orphan that a killed parent left
 * behind.
 */
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { open, truncate } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join, resolve } from 'node:path';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { adminRole, prepareDatabase, writeAccessFiles } from './access.ts';
import {
  initialise,
  makeFolder,
  makeSocketFolder,
  serverSettings,
  socketFolder,
  waitUntilAnswering,
} from './cluster.ts';
import { stopOrphan } from './orphan.ts';
import { dataFolder, type PostgresRuntime, prepareRuntime } from './runtime.ts';

export interface EmbeddedPostgresOptions {
  /** Folder of its own; made when missing. */
  dir: string;
  databaseName: string;
  urlSetting: string;
  reporter: Reporter;
  /** Further `name=value` settings of the server. */
  serverSettings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres extends Part {
  /** Connection URL of the database, as the role that owns it and nothing else; valid after `start`. */
  readonly url: string;
  /** The same as the superuser, for backups. */
  readonly adminUrl: string;
}

export function createEmbeddedPostgres(options: EmbeddedPostgresOptions): EmbeddedPostgres {
  const dir = resolve(options.dir);
  const dataDir = join(dir, 'data');
  const logFile = join(dir, 'server.log');
  // Asked each time: where it is depends on folders that the first start makes.
  const socketDir = () => socketFolder(dir);
  let runtime: PostgresRuntime | null = null;
  let lock: Server | null = null;
  let child: ChildProcess | null = null;
  let isStopping = false;

  /** Starts the server process and waits until it answers. */
  async function launch(): Promise<void> {
    await stopOrphan(dataDir, options.reporter);
    const log = await open(logFile, 'a', 0o600);
    const settings = { ...serverSettings(socketDir()), ...options.serverSettings };
    const args = [
      '-D',
      dataFolder,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ];
    // A session of its own: Ctrl-C in a terminal must reach us first, or clients lose their server mid-request.
    const started = runtime!.spawn('postgres', dataDir, args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    await log.close();
    child = started;
    let hasAnswered = false;
    started.once('exit', (code, signal) => {
      if (child !== started) return;
      child = null;
      // A server that never answered is handled by the wait below.
      if (hasAnswered && !isStopping) void relaunch(code, signal);
    });
    await waitUntilAnswering(started, socketDir(), logFile);
    hasAnswered = true;
    // It answered and died in the same instant: no other code has noticed.
    if (child !== started && !isStopping) throw new CodedError('postgres.died', 'PostgreSQL died at once.');
  }

  const urlAs = (role: string) =>
    `postgres://${role}@localhost/${options.databaseName}?host=${encodeURIComponent(socketDir())}`;

  async function relaunch(code: number | null, signal: string | null): Promise<void> {
    options.reporter.warn('postgresql ended, starting it again', { code, signal });
    for (let attempt = 1; !isStopping; attempt += 1) {
      try {
        await launch();
        options.reporter.info('postgresql is back');
        return;
      } catch (error) {
        if (attempt % 10 === 1)
          options.reporter.error('postgresql does not start', { error: describeError(error) });
        await new Promise((wake) => setTimeout(wake, Math.min(200 * attempt, 3_000)));
      }
    }
  }

  return {
    name: 'postgresql',
    get url() {
      return urlAs(options.databaseName);
    },
    get adminUrl() {
      return urlAs(adminRole);
    },
    async start() {
      isStopping = false;
      lock = await takeLock(dir);
      try {
        await makeFolder(dir, options.urlSetting);
        runtime = await prepareRuntime(join(dir, 'runtime'));
        await runtime.giveFolder(dir);
        await makeSocketFolder(socketDir(), runtime);
        await initialise(runtime, dataDir, logFile);
        // An earlier version's server, which may still run, had another user.
        await stopOrphan(dataDir, options.reporter);
        await runtime.giveTree(dataDir);
        await writeAccessFiles(dataDir, runtime);
        await truncate(logFile, 0).catch(() => {});
        await launch();
        await prepareDatabase(socketDir(), options.databaseName);
      } catch (error) {
        await this.stop();
        throw error;
      }
    },
    async stop() {
      isStopping = true;
      const running = child;
      child = null;
      // Fast shutdown: roll back what is open, write a checkpoint, leave.
      if (running && running.exitCode === null) await endProcess(running, 'SIGINT', 20_000);
      await new Promise<void>((done) => (lock ? lock.close(() => done()) : done()));
      lock = null;
    },
  };
}

/** An abstract socket named after the folder: the kernel lets it go when the process dies, however it dies. */
async function takeLock(dir: string): Promise<Server> {
  const name = `\0svc-postgres-${createHash('sha256').update(dir).digest('hex').slice(0, 32)}`;
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((done, fail) => {
    server.once('error', () =>
      fail(
        new CodedError(
          'postgres.in_use',
          `Another process already runs the embedded PostgreSQL of ${dir}. Stop it first.`,
        ),
      ),
    );
    server.listen(name, done);
  });
  server.unref();
  return server;
}

async function endProcess(child: ChildProcess, signal: NodeJS.Signals, patienceMs: number): Promise<void> {
  const gone = new Promise<void>((done) => child.once('exit', () => done()));
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGQUIT'), patienceMs);
  await gone;
  clearTimeout(timer);
}
