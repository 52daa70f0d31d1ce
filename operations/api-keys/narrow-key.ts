import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { recordKey } from './audit-key.ts';
import * as store from './store.ts';

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
