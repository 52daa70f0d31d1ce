/**
 * Accounts: people and their passwords, organizations and memberships, tenants (each a billing account), staff roles.
 *
 * It also owns `Actor`, by which every operation of this program decides who may do what. A tenant and its billing
 * account share one id. The first tenant of an organization is its payer: listed first, and what a key acts on unless
 * told otherwise. People are deactivated, never deleted.
 */

import { searchWords } from '#operations/views/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Delivery, Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type BreachedPasswords, foldEmail, noBreachedPasswords } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import type { BillingProfile, Membership, Organization, Person, Tenant, TenantStatus } from './account.ts';
import {
  type Actor,
  type CustomerActor,
  customerActorOf,
  requireOwnerOrOperator,
  requireStaff,
  type StaffActor,
} from './actor.ts';
import { addMember, removeMember, renameOrganization, revokeInvitation } from './change-members.ts';
import { changePassword } from './change-password.ts';
import { removeFactors, setPassword, setPersonActive } from './change-person.ts';
import { renameTenant, setBillingProfile, setTenantStatus } from './change-tenant.ts';
import { type CreateCustomerInput, type CreateCustomerResult, createCustomer } from './create-customer.ts';
import {
  type CreateOrganizationInput,
  type CreateOrganizationResult,
  createOrganization,
  createTenant,
} from './create-organization.ts';
import { type CreatePersonInput, createPerson, type InviteStaffInput, inviteStaff } from './create-person.ts';
import { acceptInvitation, findInvitation, type Invitation, inviteMember } from './invite-member.ts';
import type { RevokeKeysOf } from './reset-person.ts';
import { sendAccessLink } from './send-access-link.ts';
import { createSignInPeople, signInPerson } from './sign-in-people.ts';
import * as store from './store.ts';

export type {
  BillingProfile,
  Membership,
  MembershipRole,
  Organization,
  Person,
  Tenant,
  TenantStatus,
} from './account.ts';
export {
  type Actor,
  type CustomerActor,
  forbidden,
  type ProjectActor,
  reachesTenant,
  requireOperator,
  requireStaff,
  type StaffActor,
  type StaffRole,
  type SystemActor,
  systemActor,
  systemJob,
} from './actor.ts';
export { endDebtSuspension, suspendForDebt } from './change-tenant.ts';
export type { CreateCustomerResult } from './create-customer.ts';
export type { Invitation } from './invite-member.ts';
export { lockOrganization, lockPerson, lockTenantStatus } from './store.ts';

export interface AccountsDeps {
  db: () => Queryable;
  /** Mails links and notices to people. */
  post: Post;
  /** Revokes the API keys of a person whose account is reset. */
  revokeKeysOf: RevokeKeysOf;
  /** Passwords of known leaks, which are refused; absent: common ones alone. */
  breached?: BreachedPasswords;
}

/** Every reading method takes a `db`, so that a caller can read inside its own transaction. */
export interface Accounts {
  /** What signing in, resetting and changing a password work with. */
  readonly people: SignInPeople;
  /** A person with a password. Throws `accounts.email_taken` and `accounts.invalid`. The program itself only. */
  createPerson(actor: Actor, input: CreatePersonInput): Promise<Person>;
  /** One of our own people, who sets a password by a link. Throws like `createPerson`. Operators only. */
  inviteStaff(actor: Actor, input: InviteStaffInput): Promise<{ person: Person; delivery: Delivery }>;
  /** The person with this email and password, or null; same time and answer for every reason. */
  signIn(email: string, password: string): Promise<Person | null>;
  findPerson(personId: number): Promise<Person | null>;
  findPersonByEmail(email: string): Promise<Person | null>;
  /** The program itself only. */
  setPassword(actor: Actor, personId: number, password: string): Promise<void>;
  /** Mails a person a link to set a password. Operators only. */
  sendAccessLink(actor: Actor, personId: number): Promise<Delivery>;
  /** For a person who has lost every second factor: removes them and ends their sessions. Operators only. */
  removeSecondFactors(actor: Actor, personId: number): Promise<void>;
  /** A deactivated person can't sign in, none of their keys acts, and their sessions have ended for good. */
  setPersonActive(actor: Actor, personId: number, isActive: boolean): Promise<void>;

  /** A customer with an owner, who sets a password by a link. Throws `accounts.invalid` (details.field). Operators only. */
  createCustomer(actor: Actor, input: CreateCustomerInput): Promise<CreateCustomerResult>;
  createOrganization(actor: Actor, input: CreateOrganizationInput): Promise<CreateOrganizationResult>;
  listOrganizations(actor: Actor): Promise<Organization[]>;
  addMember(actor: Actor, organizationId: number, personId: number): Promise<void>;
  /** False when there was no such member; the owner can't be removed. */
  removeMember(actor: Actor, organizationId: number, personId: number): Promise<boolean>;
  /** The owner or an operator. Mails the link to the address; no answer holds it. Throws `accounts.invalid`. */
  inviteMember(actor: Actor, organizationId: number, email: string): Promise<Invitation>;
  /** Open ones. The owner or an operator. */
  listInvitations(actor: Actor, organizationId: number): Promise<Invitation[]>;
  /** False when there is no such open invitation. */
  revokeInvitation(actor: Actor, organizationId: number, invitationId: number): Promise<boolean>;
  /** Null for a link that doesn't work (any more). */
  findInvitation(secret: string): Promise<Invitation | null>;
  /** Throws `accounts.invalid`. */
  acceptInvitation(
    secret: string,
    given: { name: string; password: string },
    origin: RequestOrigin,
  ): Promise<Person>;
  /** A person's own password, who knows the old one. Throws `accounts.invalid`, `accounts.forbidden`. */
  changePassword(actor: Actor, given: { current: string; next: string }): Promise<void>;
  /** The owner or an operator. */
  renameOrganization(actor: Actor, organizationId: number, name: string): Promise<void>;
  renameTenant(actor: Actor, tenantId: number, name: string): Promise<void>;
  /** Our own people. Staff only. */
  listStaff(actor: Actor): Promise<Person[]>;
  membershipsOf(personId: number, db?: Queryable): Promise<Membership[]>;
  membersOf(organizationId: number, db?: Queryable): Promise<Membership[]>;

  createTenant(actor: Actor, input: { organizationId: number; name: string }): Promise<Tenant>;
  findTenant(tenantId: number, db?: Queryable): Promise<Tenant | null>;
  findTenants(tenantIds: readonly number[], db?: Queryable): Promise<Tenant[]>;
  /** Payer first, then oldest. */
  tenantsOfOrganization(organizationId: number, db?: Queryable): Promise<Tenant[]>;
  /** Tenants of all organizations the person belongs to; payers first. */
  tenantsOfPerson(personId: number, db?: Queryable): Promise<Tenant[]>;
  /** Every tenant there is. Staff only. */
  listTenants(actor: Actor): Promise<Tenant[]>;
  /** Tenants by the beginnings of words of their own or their organization's name, or by id. Staff only. */
  searchTenants(actor: Actor, typed: string, limit: number): Promise<Tenant[]>;
  /** Operators and the program itself (billing suspends). A closed tenant stays closed. */
  setTenantStatus(actor: Actor, tenantId: number, status: TenantStatus, db?: Queryable): Promise<void>;
  billingProfileOf(tenantId: number, db?: Queryable): Promise<BillingProfile | null>;
  setBillingProfile(actor: Actor, tenantId: number, profile: BillingProfile): Promise<void>;

  /** The actor of a signed-in customer; null when the person is gone or deactivated. */
  customerActorOf(personId: number): Promise<CustomerActor | null>;
  /** The actor of a signed-in operator or support person; null for all others. */
  staffActorOf(personId: number): Promise<StaffActor | null>;
}

export function createAccounts(deps: AccountsDeps): Accounts {
  const { db, post, revokeKeysOf, breached = noBreachedPasswords } = deps;
  return {
    people: createSignInPeople({ ...deps, breached }),
    createPerson: (actor, input) => createPerson(db(), breached, actor, input),
    inviteStaff: (actor, input) => inviteStaff({ db: db(), post }, actor, input),
    signIn: (email, password) => signInPerson(db(), email, password),
    findPerson: (personId) => store.findPerson(db(), personId),
    async findPersonByEmail(email) {
      const found = await store.findPersonByEmail(db(), foldEmail(email));
      return found === null ? null : withoutHash(found);
    },
    setPassword: (actor, personId, password) => setPassword(db(), breached, actor, personId, password),
    sendAccessLink: (actor, personId) => sendAccessLink(db(), post, actor, personId),
    removeSecondFactors: (actor, personId) => removeFactors(db(), post, actor, personId),
    setPersonActive: (actor, personId, isActive) => setPersonActive(db(), actor, personId, isActive),

    createCustomer: (actor, input) => createCustomer({ db: db(), post, revokeKeysOf }, actor, input),
    createOrganization: (actor, input) => createOrganization(db(), actor, input),
    async listOrganizations(actor) {
      requireStaff(actor);
      return store.listOrganizations(db());
    },
    addMember: (actor, organizationId, personId) => addMember(db(), actor, organizationId, personId),
    removeMember: (actor, organizationId, personId) => removeMember(db(), actor, organizationId, personId),
    inviteMember: (actor, organizationId, email) =>
      inviteMember({ db: db(), post }, actor, organizationId, email),
    async listInvitations(actor, organizationId) {
      requireOwnerOrOperator(actor, organizationId);
      return store.listOpenInvitations(db(), organizationId);
    },
    revokeInvitation: (actor, organizationId, invitationId) =>
      revokeInvitation(db(), actor, organizationId, invitationId),
    findInvitation: (secret) => findInvitation(db(), secret),
    acceptInvitation: (secret, given, origin) =>
      acceptInvitation({ db: db(), breached, revokeKeysOf }, secret, given, origin),
    changePassword: (actor, given) => changePassword(db(), breached, actor, given),
    renameOrganization: (actor, organizationId, name) =>
      renameOrganization(db(), actor, organizationId, name),
    renameTenant: (actor, tenantId, name) => renameTenant(db(), actor, tenantId, name),
    async listStaff(actor) {
      requireStaff(actor);
      return store.listStaff(db());
    },
    membershipsOf: (personId, within) => store.listMemberships(within ?? db(), { personId }),
    membersOf: (organizationId, within) => store.listMemberships(within ?? db(), { organizationId }),

    createTenant: (actor, input) => createTenant(db(), actor, input),
    findTenant: async (tenantId, within) => (await store.findTenants(within ?? db(), [tenantId]))[0] ?? null,
    findTenants: (tenantIds, within) => store.findTenants(within ?? db(), tenantIds),
    tenantsOfOrganization: (organizationId, within) =>
      store.listTenantsOfOrganization(within ?? db(), organizationId),
    tenantsOfPerson: (personId, within) => store.listTenantsOfPerson(within ?? db(), personId),
    async listTenants(actor) {
      requireStaff(actor);
      return store.listTenants(db());
    },
    async searchTenants(actor, typed, limit) {
      requireStaff(actor);
      return searchTenants(db(), typed, limit);
    },
    async setTenantStatus(actor, tenantId, status, within) {
      if (within) return setTenantStatus(within, actor, tenantId, status);
      await db()
        .transaction()
        .execute((transaction) => setTenantStatus(transaction, actor, tenantId, status));
    },
    billingProfileOf: (tenantId, within) => store.findBillingProfile(within ?? db(), tenantId),
    setBillingProfile: (actor, tenantId, profile) => setBillingProfile(db(), actor, tenantId, profile),

    customerActorOf: (personId) => customerActorOf(db(), personId),
    async staffActorOf(personId) {
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
