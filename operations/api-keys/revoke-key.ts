import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** Revokes a key from the next call on. Its person, its organization's owner, or an operator may. */
export async function revokeKey(db: Queryable, actor: Actor, keyId: string): Promise<boolean> {
  if (actor.kind === 'customer') {
    if (actor.keyId !== null) throw forbidden('A key may not revoke keys.');
    return store.revokeOwnKey(db, keyId, actor.personId, actor.ownedOrganizationIds);
  }
  requireOperator(actor);
  return store.revokeAnyKey(db, keyId);
}

/** Revokes the active keys of one name, as when the demo world mints new ones. */
export function revokeKeysNamed(
  db: Queryable,
  actor: Actor,
  personId: number,
  name: string,
): Promise<number> {
  requireOperator(actor);
  return store.revokeNamed(db, personId, name);
}
