/**
 * A PostgreSQL cluster in a folder: where its socket is, how it is made, how it is asked whether it answers.
 */
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { CodedError, describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import { adminRole } from './access.ts';
import { isPassable } from './identity.ts';
import { dataFolder, type PostgresRuntime } from './runtime.ts';

export function serverSettings(socketDir: string): Record<string, string> {
  return {
    listen_addresses: '',
    unix_socket_directories: socketDir,
    unix_socket_permissions: '0700',
    max_connections: '100',
    shared_buffers: '128MB',
    log_timezone: 'UTC',
    timezone: 'UTC',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
  };
}

/**
 * Below the folder where it is short and plain enough for a socket path and the server's user can pass the folders above,
 * else in /tmp under the folder's hash.
 */
export function socketFolder(dir: string): string {
  const inside = join(dir, 'socket');
  if (inside.length <= 85 && /^[A-Za-z0-9._/-]+$/.test(inside) && isPassable(dir)) return inside;
  return `/tmp/svc-postgres-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}`;
}

export async function makeFolder(dir: string, urlSetting: string): Promise<void> {
  try {
    makeFolders(dir);
  } catch (error) {
    throw new CodedError(
      'data_dir.unwritable',
      `The data directory can't be written (${describeError(error)}). Set SVC_DATA_DIR to a folder that you may write, or ${urlSetting} to a PostgreSQL server.`,
      {},
      error,
    );
  }
}

/** The socket is the only way in, and its folder admits the owner alone. A folder of another user is refused. */
export async function makeSocketFolder(socketDir: string, runtime: PostgresRuntime): Promise<void> {
  await mkdir(socketDir, { recursive: true, mode: 0o700 });
  await runtime.giveFolder(socketDir);
  const facts = await lstat(socketDir);
  if (!facts.isDirectory() || facts.uid !== runtime.uid) {
    throw new CodedError(
      'postgres.socket_folder',
      `${socketDir} belongs to another user. Remove it and start again.`,
    );
  }
  await chmod(socketDir, 0o700);
}

/** initdb into a folder beside, then a rename: a crash in between leaves nothing that looks finished. */
export async function initialise(runtime: PostgresRuntime, dataDir: string, logFile: string): Promise<void> {
  const isThere = await readFile(join(dataDir, 'PG_VERSION'), 'utf8').then(
    () => true,
    () => false,
  );
  if (isThere) return;
  const fresh = `${dataDir}.new`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await runtime.giveFolder(fresh);
  const log = await open(logFile, 'a', 0o600);
  const args = [
    '-D',
    dataFolder,
    `--username=${adminRole}`,
    '--auth=peer',
    '--encoding=UTF8',
    '--locale-provider=builtin',
  ];
  const child = runtime.spawn('initdb', fresh, [...args, '--locale=C.UTF-8', '--no-instructions'], {
    stdio: ['ignore', log.fd, log.fd],
  });
  await log.close();
  const code = await new Promise<number | null>((done) => {
    child.once('error', () => done(-1));
    child.once('exit', done);
  });
  if (code !== 0) throw await startFailure('initdb failed', logFile);
  await rename(fresh, dataDir);
}

export async function waitUntilAnswering(
  child: ChildProcess,
  socketDir: string,
  logFile: string,
): Promise<void> {
  let spawnError: Error | null = null;
  child.once('error', (error) => {
    spawnError = error;
  });
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    if (spawnError || child.exitCode !== null || child.signalCode !== null) break;
    if (await answers(socketDir)) return;
    await new Promise((wake) => setTimeout(wake, 20));
  }
  if (child.exitCode === null) child.kill('SIGQUIT');
  throw await startFailure('it did not come up', logFile);
}

export async function answers(socketDir: string): Promise<boolean> {
  const client = new pg.Client({
    host: socketDir,
    user: adminRole,
    database: 'postgres',
    connectionTimeoutMillis: 2_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}

async function startFailure(what: string, logFile: string): Promise<CodedError> {
  const log = await readFile(logFile, 'utf8').catch(() => '');
  const last = log.trim().split('\n').slice(-3).join(' | ');
  return new CodedError(
    'postgres.start_failed',
    `The embedded PostgreSQL can't run: ${what}. ${last} (log: ${logFile})`,
  );
}
