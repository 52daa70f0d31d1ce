/**
 * The real PostgreSQL out of an npm package, kept as a child of the program that uses it.
 *
 * It runs as an unprivileged user even where we are root (PostgreSQL refuses root), listens on a Unix socket only, lets
 * only the program's own user in, is brought back when it dies, and takes over from an orphan that a killed parent left
 * behind.
 */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { join, resolve } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { adminRole, prepareDatabase, protectAudit } from './access.ts';
import { answers, prepareCluster, socketFolder, stopOrphan, waitUntilAnswering } from './cluster.ts';
import { createServerProcess, type ServerProcess, spawnServer } from './server-process.ts';

export type EmbeddedPostgres = ReturnType<typeof createEmbeddedPostgres>;

export function createEmbeddedPostgres(options: {
  /** Folder of its own; made when missing. */
  dir: string;
  databaseName: string;
  urlSetting: string;
  reporter: Reporter;
  /** Further `name=value` settings of the server. */
  serverSettings?: Readonly<Record<string, string>>;
}) {
  const dir = resolve(options.dir);
  const dataDir = join(dir, 'data');
  const logFile = join(dir, 'server.log');
  // Asked each time: where it is depends on folders that the first start makes.
  const socketDir = () => socketFolder(dir);
  let lock: Server | null = null;
  let server: ServerProcess | null = null;

  const urlAs = (role: string) =>
    `postgres://${role}@localhost/${options.databaseName}?host=${encodeURIComponent(socketDir())}`;

  return {
    name: 'postgresql',
    /** Connection URL of the database, as the role that owns it and nothing else; valid after `start`. */
    get url(): string {
      return urlAs(options.databaseName);
    },
    /** The same as the superuser, for backups. */
    get adminUrl(): string {
      return urlAs(adminRole);
    },
    async start() {
      const { reporter, serverSettings: settings } = options;
      lock = await takeLock(dir);
      server = createServerProcess({ dataDir, logFile, socketDir, settings, reporter });
      try {
        await server.launch(await prepareCluster(dir, options.urlSetting, reporter));
        await prepareDatabase(socketDir(), options.databaseName);
      } catch (error) {
        await this.stop();
        throw error;
      }
    },
    /** Takes the audit trail from the program's role, once the migrations have made it. */
    protectAudit: () => protectAudit(socketDir(), options.databaseName),
    async stop() {
      await server?.stop();
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

// A server that outlives the process that started it. For tests, whose files share one.

/** Makes sure that the folder's server runs; returns the URL of its `postgres` database. Callers hold a lock. */
export async function startDetachedServer(
  folder: string,
  settings: Readonly<Record<string, string>>,
  reporter: Reporter,
): Promise<string> {
  const dir = resolve(folder);
  const socketDir = socketFolder(dir);
  const url = `postgres://${adminRole}@localhost/postgres?host=${encodeURIComponent(socketDir)}`;
  if (await answers(socketDir)) return url;
  const runtime = await prepareCluster(dir, 'SVC_TEST_SERVER_URL', reporter);
  const logFile = join(dir, 'server.log');
  const place = { dataDir: join(dir, 'data'), logFile, socketDir: () => socketDir };
  const child = await spawnServer({ ...place, settings }, runtime);
  await waitUntilAnswering(child, socketDir, logFile);
  child.unref();
  return url;
}

/** Stops the folder's server, if it runs. */
export async function stopDetachedServer(folder: string, reporter: Reporter): Promise<void> {
  const dir = resolve(folder);
  await stopOrphan(join(dir, 'data'), socketFolder(dir), reporter);
}
