/**
 * A PostgreSQL cluster in a folder: where its socket is, how it is made, how it is asked whether it answers.
 */
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, lchownSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { CodedError, describeError } from '#common/errors/index.ts';
import { giveTree, makeFolderOf, makeFolders, removeTree } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { adminRole, writeAccessFiles } from './access.ts';
import { dataFolder, isPassable, type PostgresRuntime, prepareRuntime } from './runtime.ts';

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

/**
 * Prepares the folder of a cluster for the start of its server. The server's user has the folders `data` and `socket` in it
 * and can exchange neither. In earlier versions it owned the folder above them too: what it may have put there, other than
 * data, is removed.
 */
export async function prepareCluster(
  dir: string,
  urlSetting: string,
  reporter: Reporter,
): Promise<PostgresRuntime> {
  const dataDir = join(dir, 'data');
  const logFile = join(dir, 'server.log');
  keepFolder(dir, urlSetting);
  refuseForeignLink(dataDir);
  const runtime = await prepareRuntime(join(dir, 'runtime'));
  const socketDir = socketFolder(dir);
  makeSocketFolder(dir, socketDir, runtime);
  removeTree(logFile);
  await initialise(runtime, dataDir, logFile);
  // An earlier version's server, which may still run, had another user.
  await stopOrphan(dataDir, socketDir, reporter);
  giveTree(realpathSync(dataDir), runtime);
  await writeAccessFiles(dataDir);
  return runtime;
}

/** Makes the folder of a cluster, whose names no lesser user than the program's own can exchange. */
export function keepFolder(dir: string, urlSetting: string): void {
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
  if (process.getuid?.() !== 0) return;
  const { uid } = statSync(dirname(dir));
  if (uid !== 0) {
    throw new CodedError(
      'data_dir.foreign',
      `${dirname(dir)} belongs to user ${uid}, who could lead root to any other file. Run this as that user (setpriv --reuid=${uid} …), or give the folder to root.`,
    );
  }
  const place = realpathSync(dir);
  lchownSync(place, 0, 0);
  // The server's user passes it on its way to the socket.
  chmodSync(place, 0o755);
}

/** An operator may keep the data elsewhere, by a link; the server's user may not say where root works. */
function refuseForeignLink(dataDir: string): void {
  const facts = lstatSync(dataDir, { throwIfNoEntry: false });
  if (!facts?.isSymbolicLink() || process.getuid?.() !== 0 || facts.uid === 0) return;
  throw new CodedError(
    'postgres.foreign_link',
    `${dataDir} is a link to ${readlinkSync(dataDir)} that root did not make. Put the data back in its place, or remove the link and make it again as root.`,
  );
}

/** The socket is the only way in, and its folder admits the owner alone. */
function makeSocketFolder(dir: string, socketDir: string, runtime: PostgresRuntime): void {
  if (makeFolderOf(socketDir, runtime)) return;
  if (socketDir === join(dir, 'socket')) removeTree(socketDir);
  if (makeFolderOf(socketDir, runtime)) return;
  throw new CodedError(
    'postgres.socket_folder',
    `${socketDir} is a link or belongs to another user. Remove it and start again.`,
  );
}

/** initdb into a folder beside, then a rename: a crash in between leaves nothing that looks finished. */
async function initialise(runtime: PostgresRuntime, dataDir: string, logFile: string): Promise<void> {
  if (existsSync(join(dataDir, 'PG_VERSION'))) return;
  const fresh = `${dataDir}.new`;
  removeTree(fresh);
  makeFolderOf(fresh, runtime);
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

export async function waitUntilAnswering(child: ChildProcess, socketDir: string, logFile: string) {
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

// What a killed parent leaves behind: a postmaster that still runs on our data folder, or that did until the folder was
// deleted or replaced, and still holds our socket. It is stopped and waited for, never worked around: deleting its pid file
// would let two servers write the same files.

/** A killed parent's children wait for init to collect them, which takes a second or two on some machines. */
const collectedWithinMs = 10_000;

/**
 * Stops the servers that `postmaster.pid` and the lock of the socket name, when they are alive, and waits until their numbers
 * are free: a server that starts while the dead one is still a zombie takes it for a living rival and refuses. Only a server
 * of the folder's own user counts: that user writes these files, and may not have root end the server of another.
 */
export async function stopOrphan(dataDir: string, socketDir: string, reporter: Reporter): Promise<void> {
  for (const file of [join(dataDir, 'postmaster.pid'), join(socketDir, '.s.PGSQL.5432.lock')])
    await stopNamed(file, reporter);
}

async function stopNamed(pidFile: string, reporter: Reporter): Promise<void> {
  const lines = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return;
  const { uid } = await stat(dirname(pidFile));
  if ((await stateOf(pid, uid)) === 'running') {
    reporter.warn('stopping a postgresql that an earlier run left behind', { pid });
    await stopRunning(pid, uid);
  }
  if (!(await waitFor(async () => (await stateOf(pid, uid)) === 'gone', collectedWithinMs))) {
    throw new CodedError(
      'postgres.orphan',
      `A dead PostgreSQL of an earlier run (process ${pid}) is not collected by its parent. End that process first.`,
    );
  }
}

async function stopRunning(pid: number, uid: number): Promise<void> {
  for (const [signal, patienceMs] of [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    if (await waitFor(async () => (await stateOf(pid, uid)) !== 'running', patienceMs)) return;
  }
  throw new CodedError(
    'postgres.orphan',
    `A PostgreSQL left over from an earlier run (process ${pid}) does not stop.`,
  );
}

async function waitFor(isDone: () => Promise<boolean>, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    if (await isDone()) return true;
    if (Date.now() > deadline) return false;
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

/** `gone` also for something else that got the number, and for the server of another user. */
async function stateOf(pid: number, uid: number): Promise<'running' | 'dead' | 'gone'> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const of = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
  if (of('Name') !== 'postgres' || Number(of('Uid')) !== uid) return 'gone';
  return of('State') === 'Z' || of('State') === 'X' ? 'dead' : 'running';
}
