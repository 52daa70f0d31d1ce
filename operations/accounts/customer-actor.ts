import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CustomerActor } from './actor.ts';
import * as store from './store.ts';

/** The actor of a signed-in customer, with what they reach at this moment; null for who is gone or deactivated. */
export async function customerActorOf(db: Queryable, personId: number): Promise<CustomerActor | null> {
  const person = await store.findPerson(db, personId);
  if (!person?.isActive) return null;
  const [memberships, tenants] = await Promise.all([
    store.listMemberships(db, { personId }),
    store.listTenantsOfPerson(db, personId),
  ]);
  return {
    kind: 'customer',
    personId,
    name: person.email,
    keyId: null,
    tenantIds: tenants.map((tenant) => tenant.id),
    ownedOrganizationIds: memberships
      .filter((membership) => membership.role === 'owner')
      .map((membership) => membership.organizationId),
    canWrite: true,
  };
}
