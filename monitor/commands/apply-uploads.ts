/** `./svc monitor apply-uploads`: applies the waiting uploads once. */
import { startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';

export async function applyUploads(environment: NodeJS.ProcessEnv): Promise<number> {
  const { database, factEngine, inbox, reporter } = compose(readConfig(environment), {
    embedded: 'existing',
  });
  const stop = await startParts([database, factEngine.part], reporter);
  try {
    await inbox.drain();
    return 0;
  } finally {
    await stop();
  }
}
