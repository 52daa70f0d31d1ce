/** Issues, rotates, narrows and revokes keys. */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import {
  type Actor,
  type CustomerActor,
  forbidden,
  requireOperator,
  requireWriter,
} from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { findMinter, listKeysBelow } from '#operations/views/key-store.ts';
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
 * a person, counted under a lock on the person, so that creates at the same time can't pass it (API-2.1.3). A key of an
 * owner mints one that may do no more than itself.
 */
export async function issueKey(
  db: Queryable,
  actor: Actor,
  input: store.IssueKeyInput,
): Promise<IssueKeyResult> {
  const isOfKey = actor.kind === 'customer' && actor.keyId !== null;
  if (actor.kind !== 'customer') requireOperator(actor);
  else if (
    actor.personId !== input.personId ||
    (!isOfKey && !actor.ownedOrganizationIds.includes(input.organizationId))
  )
    throw forbidden('Only the owner of the organization may create keys.');
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > 100)
    throw new CodedError('api_keys.invalid', 'The name of a key has 1 to 100 characters.');
  if (input.tenantIds?.length === 0)
    throw new CodedError('api_keys.invalid', 'Select at least one workspace, or all of them.');
  const { id: keyId, token, digest } = mintCredential('svc');
  await inTransaction(db, async (tx) => {
    const active = await store.lockActiveKeys(tx, input.personId);
    const expiresAt = isOfKey ? await lendableExpiry(tx, actor, input) : (input.expiresAt ?? null);
    if (expiresAt !== null && (await store.isPast(tx, expiresAt)))
      throw new CodedError('api_keys.invalid', 'The expiry of a key must be in the future.', {
        field: 'expires_at',
      });
    if (active >= activeKeysMax)
      throw new CodedError('api_keys.limit', `You have ${activeKeysMax} active keys. Revoke one first.`, {
        limit: 'keys',
        max: activeKeysMax,
        used: active,
      });
    if (!(await store.insertKey(tx, { ...input, expiresAt, name, keyId, digest })))
      throw new CodedError('api_keys.invalid', 'The key names a workspace of another organization.', {
        field: 'tenant_ids',
      });
    await emit(tx, { type: 'key.created', keyId });
    const { personId, scope, tenantIds } = input;
    const after = { name, scope, personId, workspaces: tenantIds ?? 'all', expiresAt };
    await recordKey(tx, actor, 'key.create', keyId, { after });
  });
  return { keyId, token };
}

/**
 * The expiry of a key that another one mints: none later than its own. Throws `api_keys.owner_only`, and `api_keys.invalid`
 * (details.field) for more scope, workspaces or time than the key has itself.
 */
async function lendableExpiry(
  tx: Queryable,
  actor: CustomerActor,
  { organizationId, scope, tenantIds, expiresAt = null }: store.IssueKeyInput,
): Promise<Date | null> {
  // Locked, so that it is neither revoked nor left fewer workspaces meanwhile.
  const isActive = await store.lockActiveKey(tx, actor.keyId!, null);
  const minter = await findMinter(tx, actor.keyId!, { organizationId, tenantIds: tenantIds ?? [] });
  if (!isActive || !minter?.isOwner)
    throw new CodedError('api_keys.owner_only', 'Only a key of an owner of the organization creates keys.');
  const refuse = (field: string, message: string) => new CodedError('api_keys.invalid', message, { field });
  if (scope === 'full' && minter.scope !== 'full') throw refuse('scope', 'A read key makes read keys only.');
  if (tenantIds === null || !minter.reachesAll)
    throw refuse('tenant_ids', 'must be workspaces of the calling key');
  if (expiresAt !== null && minter.expiresAt !== null && expiresAt > minter.expiresAt)
    throw refuse('expires_at', 'must not be later than the expiry of the calling key');
  return expiresAt ?? minter.expiresAt;
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
  return inTransaction(db, async (tx) => {
    if (!(await store.lockActiveKey(tx, keyId, whose))) return false;
    await store.keepGrants(tx, keyId, tenantIds);
    await recordKey(tx, actor, 'key.narrow', keyId, { after: { workspaces: tenantIds } });
    return true;
  });
}

/**
 * Revokes a key from the next call on. Its person, its organization's owner, or an operator may, and a full key those that
 * it sees (`listKeysBelow`).
 */
export async function revokeKey(
  db: Queryable,
  actor: Actor,
  keyId: string,
  tenantId?: number,
): Promise<boolean> {
  if (actor.kind !== 'customer') requireOperator(actor);
  else if (actor.keyId !== null) return revokeBelow(db, actor, keyId, tenantId);
  return inTransaction(db, async (tx) => {
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

async function revokeBelow(db: Queryable, actor: CustomerActor, keyId: string, tenantId = 0) {
  requireWriter(actor);
  return inTransaction(db, async (tx) => {
    const below = await listKeysBelow(tx, { ...actor, keyId: actor.keyId! }, tenantId);
    if (!below.some((key) => key.keyId === keyId)) return false;
    if (!(await store.revokeAnyKey(tx, keyId))) return true;
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
  await inTransaction(db, async (tx) => {
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
