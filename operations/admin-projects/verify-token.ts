/**
 * Decides which project a caller of the admin API is.
 *
 * A valid token is never refused, however many failures its source address had (NET-5.2): only a failed check looks at
 * the limit. A wrong secret, an unknown id, a revoked and an expired token give the same answer in the same time.
 */
import { parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import { sourceBucket } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AdminProject } from './project.ts';
import * as store from './store.ts';

export type TokenVerdict =
  | { outcome: 'valid'; project: AdminProject }
  | { outcome: 'refused' }
  | { outcome: 'throttled'; retryAfterSeconds: number };

export interface VerifyTokenInput {
  /** What `Authorization: Bearer` carried; null when it was absent or malformed. */
  token: string | null;
  /** True when the request carried any `Authorization`: one without it is refused but is no failed attempt. */
  isAttempt: boolean;
  sourceAddress: string;
}

export async function verifyToken(
  db: Queryable,
  input: VerifyTokenInput,
  failuresMax: number,
): Promise<TokenVerdict> {
  const presented = input.token === null ? null : parseCredential('svcadm', input.token);
  if (presented) {
    const found = await store.findToken(db, presented.id);
    const isRight = secretMatches(found?.digest ?? null, presented.secret);
    if (found && isRight && found.isActive) {
      if (found.isStaleNote) await store.noteTokenUse(db, presented.id);
      return { outcome: 'valid', project: found.project };
    }
  }
  if (!input.isAttempt) return { outcome: 'refused' };
  const { failures, retryAfterSeconds } = await store.addFailure(db, sourceBucket(input.sourceAddress));
  return failures > failuresMax ? { outcome: 'throttled', retryAfterSeconds } : { outcome: 'refused' };
}
