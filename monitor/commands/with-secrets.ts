import { startParts } from '#common/lifecycle/index.ts';
import { createKeyWrapper } from '#service-kit/secrets/index.ts';
import type { SecretsTarget } from '#service-kit/secrets/secrets-commands.ts';
import { compose } from '../composition.ts';
import { readConfig, secretsKeyPrefix } from '../config.ts';

/** Opens the database for work on the keys of its secrets; running processes may continue. */
export async function withSecrets(work: (target: SecretsTarget) => Promise<void>): Promise<void> {
  const config = readConfig(process.env);
  const { database, secrets, reporter } = compose(config, { embedded: 'existing' });
  const stop = await startParts([database, secrets.part], reporter);
  try {
    await work({
      secrets,
      settingPrefix: secretsKeyPrefix,
      createWrapper: (key) =>
        createKeyWrapper({ ...key, settingPrefix: secretsKeyPrefix, programDir: config.programDir }),
      actorOf: (job) => ({ kind: 'system', job }),
    });
  } finally {
    await stop();
  }
}
