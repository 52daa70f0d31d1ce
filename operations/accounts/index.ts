/**
 * Accounts: people and their passwords, organizations and memberships, tenants (each a billing account), staff roles.
 *
 * It also owns `Actor`, by which every operation of this program decides who may do what. A tenant and its billing
 * account share one id. The first tenant of an organization is its payer: listed first, and what a key acts on unless
 * told otherwise. People are deactivated, never deleted.
 */

import { searchWords } from '#operations/views/search-store.ts';
import type { TenantStatus } from '#operations/views/tenant-store.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type BreachedPasswords, foldEmail, noBreachedPasswords } from '#service-kit/sessions/index.ts';
import type { BillingProfile, Organization, Person, Tenant } from './account.ts';
import {
  type Actor,
  customerActorOf,
  requireOwnerOrOperator,
  requireStaff,
  type StaffActor,
} from './actor.ts';
import { addMember, removeMember, renameOrganization, revokeInvitation } from './change-members.ts';
import { changePassword } from './change-password.ts';
import { removeFactors, setPassword, setPersonActive } from './change-person.ts';
import {
  type ReleaseKeptAddresses,
  renameTenant,
  setBillingProfile,
  setTenantStatus,
} from './change-tenant.ts';
import { type CreateCustomerInput, createCustomer } from './create-customer.ts';
import { type CreateOrganizationInput, createOrganization, createTenant } from './create-organization.ts';
import { type CreatePersonInput, createPerson, type InviteStaffInput, inviteStaff } from './create-person.ts';
import { acceptInvitation, findInvitation, type Invitation, inviteMember } from './invite-member.ts';
import type { RevokeKeysOf } from './reset-person.ts';
import { sendAccessLink } from './send-access-link.ts';
import { createSignInPeople, signInPerson } from './sign-in-people.ts';
import { createStaffAccounts } from './staff-accounts.ts';
import * as store from './store.ts';

export type { BillingProfile, Membership, Person, Tenant } from './account.ts';
export {
  type Actor,
  type CustomerActor,
  forbidden,
  reachesTenant,
  requireOperator,
  requireStaff,
  requireWriter,
  type StaffActor,
  systemActor,
  systemJob,
} from './actor.ts';
export { endDebtSuspension, suspendForDebt } from './change-tenant.ts';
export type { Invitation } from './invite-member.ts';
export { lockOrganization, lockPerson, lockTenantStatus } from './store.ts';

export type Accounts = ReturnType<typeof createAccounts>;

export function createAccounts(deps: {
  db: () => Queryable;
  /** Mails links and notices to people. */
  post: Post;
  /** Revokes the API keys of a person whose account is reset. */
  revokeKeysOf: RevokeKeysOf;
  /** Gives back the addresses that a tenant keeps, when it is closed. */
  releaseKeptAddresses: ReleaseKeptAddresses;
  /** Passwords of known leaks, which are refused; absent: common ones alone. */
  breached?: BreachedPasswords;
}) {
  const { db, post, revokeKeysOf, releaseKeptAddresses, breached = noBreachedPasswords } = deps;
  return {
    /** What signing in, resetting and changing a password work with. */
    people: createSignInPeople({ ...deps, breached }),
    /** Our own people, for the OpenID provider. */
    staff: createStaffAccounts(db),
    /** A person with a password. Throws `accounts.email_taken` and `accounts.invalid`. The program itself only. */
    createPerson: (actor: Actor, input: CreatePersonInput) => createPerson(db(), breached, actor, input),
    /** One of our own people, who sets a password by a link. Throws like `createPerson`. Operators only. */
    inviteStaff: (actor: Actor, input: InviteStaffInput) => inviteStaff({ db: db(), post }, actor, input),
    /** The person with this email and password, or null; same time and answer for every reason. */
    signIn: (email: string, password: string) => signInPerson(db(), email, password),
    findPerson: (personId: number) => store.findPerson(db(), personId),
    async findPersonByEmail(email: string): Promise<Person | null> {
      const found = await store.findPersonByEmail(db(), foldEmail(email));
      return found === null ? null : withoutHash(found);
    },
    /** The program itself only. */
    setPassword: (actor: Actor, personId: number, password: string) =>
      setPassword(db(), breached, actor, personId, password),
    /** Mails a person a link to set a password. Operators only. */
    sendAccessLink: (actor: Actor, personId: number) => sendAccessLink(db(), post, actor, personId),
    /** For a person who has lost every second factor: removes them and ends their sessions. Operators only. */
    removeSecondFactors: (actor: Actor, personId: number) => removeFactors(db(), post, actor, personId),
    /** A deactivated person can't sign in, none of their keys acts, and their sessions have ended for good. */
    setPersonActive: (actor: Actor, personId: number, isActive: boolean) =>
      setPersonActive(db(), actor, personId, isActive),

    /** A customer with an owner, who sets a password by a link. Throws `accounts.invalid` (details.field). Operators only. */
    createCustomer: (actor: Actor, input: CreateCustomerInput) =>
      createCustomer({ db: db(), post, revokeKeysOf }, actor, input),
    createOrganization: (actor: Actor, input: CreateOrganizationInput) =>
      createOrganization(db(), actor, input),
    async listOrganizations(actor: Actor): Promise<Organization[]> {
      requireStaff(actor);
      return store.listOrganizations(db());
    },
    addMember: (actor: Actor, organizationId: number, personId: number) =>
      addMember(db(), actor, organizationId, personId),
    /** False when there was no such member; the owner can't be removed. */
    removeMember: (actor: Actor, organizationId: number, personId: number) =>
      removeMember(db(), actor, organizationId, personId),
    /** The owner or an operator. Mails the link to the address; no answer holds it. Throws `accounts.invalid`. */
    inviteMember: (actor: Actor, organizationId: number, email: string) =>
      inviteMember({ db: db(), post }, actor, organizationId, email),
    /** Open ones. The owner or an operator. */
    async listInvitations(actor: Actor, organizationId: number): Promise<Invitation[]> {
      requireOwnerOrOperator(actor, organizationId);
      return store.listOpenInvitations(db(), organizationId);
    },
    /** False when there is no such open invitation. */
    revokeInvitation: (actor: Actor, organizationId: number, invitationId: number) =>
      revokeInvitation(db(), actor, organizationId, invitationId),
    /** Null for a link that doesn't work (any more). */
    findInvitation: (secret: string) => findInvitation(db(), secret),
    /** Throws `accounts.invalid`. */
    acceptInvitation: (secret: string, given: { name: string; password: string }, origin: RequestOrigin) =>
      acceptInvitation({ db: db(), breached, revokeKeysOf }, secret, given, origin),
    /** A person's own password, who knows the old one. Throws `accounts.invalid`, `accounts.forbidden`. */
    changePassword: (actor: Actor, given: { current: string; next: string }) =>
      changePassword(db(), breached, actor, given),
    /** The owner or an operator. */
    renameOrganization: (actor: Actor, organizationId: number, name: string) =>
      renameOrganization(db(), actor, organizationId, name),
    renameTenant: (actor: Actor, tenantId: number, name: string) => renameTenant(db(), actor, tenantId, name),
    /** Our own people. Staff only. */
    async listStaff(actor: Actor): Promise<Person[]> {
      requireStaff(actor);
      return store.listStaff(db());
    },
    membershipsOf: (personId: number) => store.listMemberships(db(), { personId }),
    membersOf: (organizationId: number) => store.listMemberships(db(), { organizationId }),

    createTenant: (actor: Actor, input: { organizationId: number; name: string }) =>
      createTenant(db(), actor, input),
    findTenant: async (tenantId: number): Promise<Tenant | null> =>
      (await store.findTenants(db(), [tenantId]))[0] ?? null,
    findTenants: (tenantIds: readonly number[]) => store.findTenants(db(), tenantIds),
    /** Payer first, then oldest. */
    tenantsOfOrganization: (organizationId: number) => store.listTenantsOfOrganization(db(), organizationId),
    /** Tenants of all organizations the person belongs to; payers first. */
    tenantsOfPerson: (personId: number) => store.listTenantsOfPerson(db(), personId),
    /** Every tenant there is. Staff only. */
    async listTenants(actor: Actor): Promise<Tenant[]> {
      requireStaff(actor);
      return store.listTenants(db());
    },
    /** Tenants by the beginnings of words of their own or their organization's name, or by id. Staff only. */
    async searchTenants(actor: Actor, typed: string, limit: number): Promise<Tenant[]> {
      requireStaff(actor);
      return searchTenants(db(), typed, limit);
    },
    /** Operators and the program itself (billing suspends). A closed tenant stays closed. */
    setTenantStatus: (actor: Actor, tenantId: number, status: TenantStatus) =>
      inTransaction(db(), (tx) => setTenantStatus(tx, releaseKeptAddresses, actor, tenantId, status)),
    billingProfileOf: (tenantId: number) => store.findBillingProfile(db(), tenantId),
    setBillingProfile: (actor: Actor, tenantId: number, profile: BillingProfile) =>
      setBillingProfile(db(), actor, tenantId, profile),

    /** The actor of a signed-in customer; null when the person is gone or deactivated. */
    customerActorOf: (personId: number) => customerActorOf(db(), personId),
    /** The actor of a signed-in operator or support person; null for all others. */
    async staffActorOf(personId: number): Promise<StaffActor | null> {
      const person = await store.findPerson(db(), personId);
      return person?.isActive && person.staffRole
        ? { kind: 'staff', personId, role: person.staffRole, name: person.email }
        : null;
    },
  };
}

function withoutHash(found: Person & { passwordHash: string | null }): Person {
  const { passwordHash: _, ...person } = found;
  return person;
}

const textMax = 100;

/** Tenants with all of these beginnings of words in their own or their organization's name, or with this id. */
async function searchTenants(db: Queryable, typed: string, limit: number): Promise<Tenant[]> {
  const text = typed.slice(0, textMax).trim();
  const words = searchWords(text);
  if (words.length === 0) return [];
  const id = /^\d{1,15}$/.test(text) ? Number(text) : null;
  return store.findTenantsByWords(db, { id, words }, limit);
}
