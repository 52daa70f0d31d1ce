/** Secrets for tests: the wrapping key is a fixed one in memory, so that nothing is written but the database. */
import { silentReporter } from '#common/reporter/index.ts';
import { decrypt, encrypt } from '../envelope.ts';
import { createSecrets, type Secrets, type SecretsDeps } from '../index.ts';
import type { KeyWrapper } from '../key-wrapper.ts';

const key = Buffer.alloc(32, 7);

export const testWrapper: KeyWrapper = {
  place: 'the key of tests',
  prepare: async () => {},
  wrap: async (plain, context) => ({
    wrapped: encrypt(key, plain, [Buffer.from(context)]).toString('base64'),
    wrappedBy: 'test',
  }),
  async unwrap({ wrapped }, context) {
    const plain = decrypt(key, Buffer.from(wrapped, 'base64'), [Buffer.from(context)]);
    if (plain === null) throw new Error('not wrapped by the key of tests');
    return plain;
  },
};

export function createTestSecrets(deps: Pick<SecretsDeps, 'db' | 'program' | 'columns'>): Secrets {
  return createSecrets({ wrapper: testWrapper, reporter: silentReporter, ...deps });
}
