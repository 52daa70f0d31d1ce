/** Issues, rotates, narrows and revokes keys. */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, type CustomerActor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
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
export async function issueKey(
  db: Queryable,
  actor: Actor,
  input: store.IssueKeyInput,
): Promise<IssueKeyResult> {
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

/**
 * Leaves a key those of its workspaces that are named, from the next call on (API-2.1.5). Its person, its organization's
 * owner, or an operator may. A key never gains permissions: its holder must not be able to do more than was
 * granted at creation. A key without a workspace authenticates no caller. False when the actor has no such active key.
 */
export async function narrowKey(
  db: Queryable,
  actor: Actor,
  keyId: string,
  tenantIds: readonly number[],
): Promise<boolean> {
  if (actor.kind === 'customer') {
    if (actor.keyId !== null) throw forbidden('A key may not change keys.');
  } else requireOperator(actor);
  const whose =
    actor.kind === 'customer'
      ? { personId: actor.personId, organizationIds: actor.ownedOrganizationIds }
      : null;
  return db.transaction().execute(async (tx) => {
    if (!(await store.lockActiveKey(tx, keyId, whose))) return false;
    await store.keepGrants(tx, keyId, tenantIds);
    await recordKey(tx, actor, 'key.narrow', keyId, { after: { workspaces: tenantIds } });
    return true;
  });
}

/** Revokes a key from the next call on. Its person, its organization's owner, or an operator may. */
export async function revokeKey(db: Queryable, actor: Actor, keyId: string): Promise<boolean> {
  if (actor.kind === 'customer') {
    if (actor.keyId !== null) throw forbidden('A key may not revoke keys.');
  } else requireOperator(actor);
  return db.transaction().execute(async (tx) => {
    const isRevoked =
      actor.kind === 'customer'
        ? await store.revokeOwnKey(tx, keyId, actor.personId, actor.ownedOrganizationIds)
        : await store.revokeAnyKey(tx, keyId);
    if (!isRevoked) return false;
    await emit(tx, { type: 'key.revoked', keyId });
    await recordKey(tx, actor, 'key.revoke', keyId);
    return true;
  });
}

/** Revokes all keys of a person whose account is reset; `tx` is the transaction of that. */
export async function revokeKeysOf(tx: Queryable, actor: AuditActor, personId: number): Promise<void> {
  for (const keyId of await store.revokeAllOf(tx, personId)) {
    await emit(tx, { type: 'key.revoked', keyId });
    await recordKey(tx, actor, 'key.revoke', keyId);
  }
}

/** Revokes the active keys of one name, as when the demo world mints new ones. */
export function revokeKeysNamed(
  db: Queryable,
  actor: Actor,
  personId: number,
  name: string,
): Promise<number> {
  requireOperator(actor);
  return inTransaction(db, async (trx) => {
    const revoked = await store.revokeNamed(trx, personId, name);
    for (const keyId of revoked) await recordKey(trx, actor, 'key.revoke', keyId);
    return revoked.length;
  });
}

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

/** One entry of the audit trail about a key, which is its organization's to read. */
async function recordKey(
  trx: Queryable,
  actor: AuditActor,
  operation: `key.${string}`,
  keyId: string,
  states: { before?: object; after?: object } = {},
): Promise<void> {
  const key = await store.findSubject(trx, keyId);
  await record(trx, actor, {
    operation,
    subject: { kind: 'key', id: keyId, name: key?.name ?? null },
    organizationId: key?.organizationId ?? null,
    ...states,
  });
}
