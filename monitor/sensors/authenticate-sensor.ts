import { createBatching } from '#common/batching/index.ts';
import { parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type CredentialState, findCredentials } from './credential-store.ts';
import type { EnrolledSensor } from './store.ts';

/** A sensor with the credential that it showed. */
export interface AuthenticatedSensor extends EnrolledSensor {
  credentialState: CredentialState;
}

export type CredentialCheck =
  | { isTaken: true; sensor: AuthenticatedSensor }
  /** `expired` and `replaced` are told only to those who know the secret. */
  | { isTaken: false; why: 'unknown' }
  | { isTaken: false; why: 'expired' | 'replaced'; credentialId: string; endedAtMs: number };

/**
 * Tells which sensor a bearer token belongs to. Only reads, and those who ask at the same time are looked up at once;
 * nothing is remembered, so a revoked sensor is refused from its next call on. Unknown ids take the time of known ones.
 */
export function createAuthentication(reader: () => Queryable): (token: string) => Promise<CredentialCheck> {
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
    if (!credential) return { isTaken: false, why: 'unknown' };
    const found = await find(credential.id);
    const isRight = secretMatches(found?.digest ?? null, credential.secret);
    if (!found || !isRight) return { isTaken: false, why: 'unknown' };
    const { id, sensor, expiresAtMs, isRotationDue, isNew, refusal, endedAtMs } = found;
    if (refusal !== null) return { isTaken: false, why: refusal, credentialId: id, endedAtMs: endedAtMs! };
    return {
      isTaken: true,
      sensor: { ...sensor, credentialState: { id, expiresAtMs, isRotationDue, isNew } },
    };
  };
}
