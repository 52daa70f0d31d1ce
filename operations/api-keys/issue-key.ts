import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { recordKey } from './audit-key.ts';
import type { IssueKeyInput } from './key.ts';
import * as store from './store.ts';

export interface IssueKeyResult {
  keyId: string;
  /** The whole token, to be shown once: nothing of it but the digest is kept. */
  token: string;
}

/** Of one person. */
export const activeKeysMax = 25;

/**
 * Mints a key. Only the organization's owner, for themselves, or the program may (API-2.1.e); at most 25 active keys
 * a person, counted under a lock on the person, so that creates at the same time can't pass it (API-2.1.3).
 */
export async function issueKey(db: Queryable, actor: Actor, input: IssueKeyInput): Promise<IssueKeyResult> {
  if (actor.kind === 'customer') {
    if (!actor.ownedOrganizationIds.includes(input.organizationId) || actor.personId !== input.personId)
      throw forbidden('Only the owner of the organization may create keys.');
  } else requireOperator(actor);
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > 100)
    throw new CodedError('api_keys.invalid', 'The name of a key has 1 to 100 characters.');
  if (input.tenantIds?.length === 0)
    throw new CodedError('api_keys.invalid', 'Select at least one workspace, or all of them.');
  const { id: keyId, token, digest } = mintCredential('svc');
  await db.transaction().execute(async (tx) => {
    const active = await store.lockActiveKeys(tx, input.personId);
    if (active >= activeKeysMax)
      throw new CodedError('api_keys.limit', `You have ${activeKeysMax} active keys. Revoke one first.`);
    if (!(await store.insertKey(tx, { ...input, name, keyId, digest })))
      throw new CodedError('api_keys.invalid', 'The key names a workspace of another organization.');
    await emit(tx, { type: 'key.created', keyId });
    const { personId, scope, tenantIds, expiresAt = null } = input;
    const after = { name, scope, personId, workspaces: tenantIds ?? 'all', expiresAt };
    await recordKey(tx, actor, 'key.create', keyId, { after });
  });
  return { keyId, token };
}
