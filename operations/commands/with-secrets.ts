import { createKeyWrapper } from '#service-kit/secrets/index.ts';
import type { SecretsTarget } from '#service-kit/secrets/secrets-commands.ts';
import { readOperationsSettings, secretsKeyPrefix } from '../config.ts';
import { programDir } from '../platform.ts';
import { withFeatures } from './with-features.ts';

/** Opens the database, beside running processes too, for work on the keys of its secrets. */
export async function withSecrets(work: (target: SecretsTarget) => Promise<void>): Promise<void> {
  await withFeatures(async ({ secrets }) => {
    await secrets.part.start();
    const dir = programDir(readOperationsSettings());
    await work({
      secrets,
      settingPrefix: secretsKeyPrefix,
      createWrapper: (key) => createKeyWrapper({ ...key, settingPrefix: secretsKeyPrefix, programDir: dir }),
      actorOf: (job) => ({ kind: 'system', job }),
    });
  });
}
