import { hasCode } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createEmbeddedPostgres, type Database, isConnectionFailure } from '#service-kit/postgres/index.ts';
import { compose } from '../composition.ts';
import { type OperationsSettings, readOperationsSettings, reporterOf } from '../config.ts';
import type { Features } from '../features.ts';
import { createOperationsDatabase, programDir } from '../platform.ts';

/**
 * Runs a command on the program's database, beside a running `serve` or without one: where the embedded server is up
 * already it is joined, else it is started for the command.
 */
export async function withFeatures(work: (features: Features) => Promise<void>): Promise<void> {
  const settings = readOperationsSettings();
  const reporter = reporterOf({
    ...settings,
    logLevel: settings.logLevel === 'info' ? 'warn' : settings.logLevel,
  });
  const database = await openDatabase(settings, reporter);
  try {
    await work(await compose(settings, { database, reporter }));
  } finally {
    await database.stop();
  }
}

async function openDatabase(settings: OperationsSettings, reporter: Reporter): Promise<Database> {
  if (settings.databaseUrl === null) {
    const running = createEmbeddedPostgres({
      dir: `${programDir(settings)}/postgres`,
      databaseName: 'operations',
      urlSetting: 'SVC_OPERATIONS_DATABASE_URL',
      reporter,
    });
    const joined = createOperationsDatabase(settings, reporter, { url: running.url });
    try {
      await joined.start();
      return joined;
    } catch (error) {
      if (!hasCode(error, 'database.unreachable') && !isConnectionFailure(error)) throw error;
    }
  }
  const database = createOperationsDatabase(settings, reporter);
  await database.start();
  return database;
}
