import { CodedError } from '#common/errors/index.ts';
import { systemJob } from '#operations/accounts/index.ts';
import { withFeatures } from './with-features.ts';

export async function revokeKeyCommand(keyId: string): Promise<void> {
  await withFeatures(async ({ apiKeys }) => {
    if (!(await apiKeys.revokeKey(systemJob('revoke-key'), keyId)))
      throw new CodedError('command.no_key', `There is no active key ${keyId}.`);
    process.stdout.write(`key ${keyId} revoked\n`);
  });
}
