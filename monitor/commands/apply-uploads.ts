/** `./svc monitor apply-uploads`: runs only the inbox worker. */
import { runUntilSignal, startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';

export async function applyUploads(environment: NodeJS.ProcessEnv, isOnce: boolean): Promise<number> {
  const monitor = compose(readConfig(environment), { mayJoin: true });
  const { database, inbox, reporter } = monitor;
  if (!isOnce) return runUntilSignal([database, inbox.worker], reporter, () => reporter.info('ready'));
  const stop = await startParts([database], reporter);
  try {
    await inbox.drain();
    return 0;
  } finally {
    await stop();
  }
}
