import { CodedError } from '#common/errors/index.ts';
import { type CustomerActor, forbidden } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { recordKey } from './audit-key.ts';
import { activeKeysMax, type IssueKeyResult } from './issue-key.ts';
import * as store from './store.ts';

/** How long the old key goes on beside the new one. */
const rotationOverlapHours = 24;

/**
 * Mints a key that may do what an old one may, and lets the old one expire a day later, so that programs can be moved over
 * one by one. Both are active meanwhile and count among the 25. A key that expires gives the new one as long a life as it had
 * itself. Only the owner, for a key of their own.
 *
 * Throws `api_keys.not_found`, `api_keys.limit`, `accounts.forbidden`.
 */
export async function rotateKey(db: Queryable, actor: CustomerActor, keyId: string): Promise<IssueKeyResult> {
  if (actor.keyId !== null) throw forbidden('A key may not rotate keys.');
  const { id, token, digest } = mintCredential('svc');
  await db.transaction().execute(async (tx) => {
    // The person first, as where keys are issued: two transactions that lock in one order don't deadlock.
    const active = await store.lockActiveKeys(tx, actor.personId);
    if (active >= activeKeysMax)
      throw new CodedError('api_keys.limit', `You have ${activeKeysMax} active keys. Revoke one first.`);
    const isCopied = await store.copyKey(tx, keyId, {
      keyId: id,
      digest,
      personId: actor.personId,
      organizationIds: actor.ownedOrganizationIds,
    });
    if (!isCopied)
      throw new CodedError(
        'api_keys.not_found',
        'There is no such active key of yours, or it was rotated already.',
      );
    await store.replaceKey(tx, keyId, id, rotationOverlapHours);
    await emit(tx, { type: 'key.created', keyId: id });
    const after = { replacedBy: id, oldEndsInHours: rotationOverlapHours };
    await recordKey(tx, actor, 'key.rotate', keyId, { after });
  });
  return { keyId: id, token };
}
