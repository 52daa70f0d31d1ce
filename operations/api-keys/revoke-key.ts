import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { recordKey } from './audit-key.ts';
import * as store from './store.ts';

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
