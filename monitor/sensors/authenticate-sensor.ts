import { createBatching } from '#common/batching/index.ts';
import { parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type EnrolledSensor, findCredentials } from './store.ts';

/**
 * Tells which sensor a bearer token belongs to. Only reads, and those who ask at the same time are looked up at once;
 * nothing is remembered, so a revoked sensor is refused from its next call on. Unknown ids take the time of known ones.
 */
export function createAuthentication(
  reader: () => Queryable,
): (token: string) => Promise<EnrolledSensor | null> {
  const find = createBatching({
    itemsMax: 200,
    batchesMax: 2,
    async run(ids: readonly string[]) {
      const found = await findCredentials(reader(), ids);
      return ids.map((id) => found.get(id) ?? null);
    },
  });
  return async (token) => {
    const credential = parseCredential('svcsen', token);
    if (!credential) return null;
    const found = await find(credential.id);
    const isRight = secretMatches(found?.digest ?? null, credential.secret);
    return found && isRight ? found.sensor : null;
  };
}
