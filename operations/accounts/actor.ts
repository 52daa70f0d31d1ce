/**
 * Who acts: every operation takes an `Actor` and decides by it, so that portal, customer API, consoles and admin API
 * are doors with one lock.
 *
 * The authentication step (session, key or token) creates an actor for one request. It is never cached,
 * because memberships and grants may change between two requests.
 */
import { CodedError } from '#common/errors/index.ts';
import type { Traceable } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** A customer: a signed-in person, or a key acting for one. Everything it sees lies in `tenantIds`. */
export interface CustomerActor extends Traceable {
  readonly kind: 'customer';
  readonly personId: number;
  /** Public id of the key that acts; null for a signed-in person. */
  readonly keyId: string | null;
  /** Tenants it may act on now. Empty means that it reaches nothing. */
  readonly tenantIds: readonly number[];
  /** Organizations whose owner it is; empty for keys. */
  readonly ownedOrganizationIds: readonly number[];
  /** False for read keys. */
  readonly canWrite: boolean;
}

/** One of our own people. Support reads everything and changes nothing. */
export interface StaffActor extends Traceable {
  readonly kind: 'staff';
  readonly personId: number;
  readonly role: StaffRole;
}

/** A machine with an admin API token. */
export interface ProjectActor extends Traceable {
  readonly kind: 'project';
  readonly projectId: number;
  readonly permissions: ReadonlySet<string>;
}

/** The program itself: seeding, background loops, commands on the operator's own terminal. */
export interface SystemActor extends Traceable {
  readonly kind: 'system';
  /** Names the background job or the command in the audit trail, such as `add-credit`. */
  readonly job?: string | undefined;
}

export type Actor = CustomerActor | StaffActor | ProjectActor | SystemActor;
export type StaffRole = 'operator' | 'support';

export const systemActor: SystemActor = { kind: 'system' };

/** The program itself, as the audit trail names it: a background job or a command of the operator's own terminal. */
export function systemJob(job: string): SystemActor {
  return { kind: 'system', job };
}

/** True when the actor may act on this tenant at all (reading included). */
export function reachesTenant(actor: Actor, tenantId: number): boolean {
  if (actor.kind === 'system' || actor.kind === 'staff') return true;
  return actor.kind === 'customer' && actor.tenantIds.includes(tenantId);
}

/** Throws `accounts.forbidden` for those who may look at what customers have and not change it. */
export function requireWriter(actor: Actor): void {
  if (actor.kind === 'customer' && !actor.canWrite) throw forbidden('This key may only read.');
  if (actor.kind === 'staff' && actor.role !== 'operator') throw forbidden('Support staff may only read.');
  if (actor.kind === 'project') throw forbidden('A project may not change this.');
}

/** Throws `accounts.forbidden` unless the actor is an operator or the program itself. */
export function requireOperator(actor: Actor): void {
  if (actor.kind === 'system' || (actor.kind === 'staff' && actor.role === 'operator')) return;
  throw forbidden('Only an operator may do this. Ask one of them.');
}

/** Throws `accounts.forbidden` unless the actor is staff (support included) or the program itself. */
export function requireStaff(actor: Actor): void {
  if (actor.kind === 'system' || actor.kind === 'staff') return;
  throw forbidden('Only staff may see this.');
}

/** Throws `accounts.forbidden` unless the program itself acts. */
export function requireSystem(actor: Actor): void {
  if (actor.kind !== 'system') throw forbidden('People set their own passwords.');
}

/** Throws `accounts.forbidden` unless the actor owns this organization, or is an operator or the program. */
export function requireOwnerOrOperator(actor: Actor, organizationId: number): void {
  if (actor.kind === 'customer') {
    if (actor.ownedOrganizationIds.includes(organizationId)) return;
    throw forbidden('Only the owner of the organization may do this.');
  }
  requireOperator(actor);
}

/** The refusal of an operation to an actor; surfaces make a 403 of it. */
export function forbidden(message: string): CodedError {
  return new CodedError('accounts.forbidden', message);
}

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
