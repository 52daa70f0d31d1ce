/** A server that outlives the process that started it. For tests, whose files share one. */
import { open, truncate } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Reporter } from '#common/reporter/index.ts';
import { adminRole, writeAccessFiles } from './access.ts';
import {
  answers,
  initialise,
  makeFolder,
  makeSocketFolder,
  serverSettings,
  socketFolder,
  waitUntilAnswering,
} from './cluster.ts';
import { stopOrphan } from './orphan.ts';
import { dataFolder, prepareRuntime } from './runtime.ts';

/** Makes sure that the folder's server runs; returns the URL of its `postgres` database. Callers hold a lock. */
export async function startDetachedServer(
  folder: string,
  settings: Readonly<Record<string, string>>,
  reporter: Reporter,
): Promise<string> {
  const dir = resolve(folder);
  await makeFolder(dir, 'SVC_TEST_SERVER_URL');
  const socketDir = socketFolder(dir);
  const url = `postgres://${adminRole}@localhost/postgres?host=${encodeURIComponent(socketDir)}`;
  if (await answers(socketDir)) return url;
  const dataDir = join(dir, 'data');
  const logFile = join(dir, 'server.log');
  const runtime = await prepareRuntime(join(dir, 'runtime'));
  await runtime.giveFolder(dir);
  await makeSocketFolder(socketDir, runtime);
  await initialise(runtime, dataDir, logFile);
  await stopOrphan(dataDir, socketDir, reporter);
  await runtime.giveTree(dataDir);
  await writeAccessFiles(dataDir, runtime);
  await truncate(logFile, 0).catch(() => {});
  const log = await open(logFile, 'a', 0o600);
  const all = { ...serverSettings(socketDir), ...settings };
  const args = [
    '-D',
    dataFolder,
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const child = runtime.spawn('postgres', dataDir, args, {
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  await log.close();
  await waitUntilAnswering(child, socketDir, logFile);
  child.unref();
  return url;
}

/** Stops the folder's server, if it runs. */
export async function stopDetachedServer(folder: string, reporter: Reporter): Promise<void> {
  const dir = resolve(folder);
  await stopOrphan(join(dir, 'data'), socketFolder(dir), reporter);
}
