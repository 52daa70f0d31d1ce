/** A PostgreSQL server of its own with every safety on, unlike the shared one of tests, and the tables of operations in it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentReporter } from '#common/reporter/index.ts';
import { readOperationsSettings } from '#operations/config.ts';
import { createOperationsDatabase } from '#operations/platform.ts';
import { createEmbeddedPostgres } from '#service-kit/postgres/index.ts';

/** Everything ends with `undo`. */
export async function startOwnDatabase(undo: AsyncDisposableStack) {
  const dir = await mkdtemp(join(tmpdir(), 'svc-own-database-'));
  undo.defer(() => rm(dir, { recursive: true, force: true }));
  const embedded = createEmbeddedPostgres({
    dir: join(dir, 'postgres'),
    databaseName: 'operations',
    urlSetting: 'none',
    reporter: silentReporter,
  });
  await embedded.start();
  undo.defer(() => embedded.stop());
  const settings = readOperationsSettings({ SVC_DATA_DIR: dir, SVC_PAYMENT_GATEWAY: 'test' });
  const database = createOperationsDatabase(settings, silentReporter, { url: embedded.url });
  await database.start();
  undo.defer(() => database.stop());
  return {
    /** Data directory of the program; the server's is `postgres` in it. */
    dir,
    url: embedded.url,
    settings,
    /** Started. */
    database,
  };
}
