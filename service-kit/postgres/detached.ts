/** A server that outlives the process that started it. For tests, whose files share one. */
import { join, resolve } from 'node:path';
import type { Reporter } from '#common/reporter/index.ts';
import { adminRole } from './access.ts';
import { answers, prepareCluster, socketFolder, waitUntilAnswering } from './cluster.ts';
import { stopOrphan } from './orphan.ts';
import { spawnServer } from './server-process.ts';

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
