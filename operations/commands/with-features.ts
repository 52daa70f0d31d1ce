import { compose } from '../composition.ts';
import { readOperationsSettings, reporterOf } from '../config.ts';
import type { Features } from '../features.ts';
import { createOperationsDatabase } from '../platform.ts';

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
  const database = createOperationsDatabase(settings, reporter, { embedded: 'existing' });
  await database.start();
  try {
    await work(await compose(settings, { database, reporter }));
  } finally {
    await database.stop();
  }
}
