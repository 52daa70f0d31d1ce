/**
 * Staff sign in at an OpenID provider, such as Keycloak or Entra ID, beside passwords and passkeys.
 *
 * The provider says who a person is and in which groups; groups give the role, at each sign-in. An account of the provider
 * is a person here by issuer and subject. A person who is not known yet is made; where their email address belongs to an
 * account already, its owner signs in and links the two: no link follows from an address. A session is asked about its
 * groups each hour, and ends where they give no role any more. Sensitive changes are confirmed at the provider.
 * A person whom the provider made has no other way in; everyone else keeps the local one, for the day it is down.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import type { OidcSettings } from './settings.ts';

export { oidcSection, registerOidc, registerOidcAccount } from './oidc.routes.ts';
export { createOidc, type Oidc } from './oidc.ts';

/** What a group gives: an operator changes things, a reader reads. */
export type StaffRoleName = 'operator' | 'reader';

/** The staff of a program. */
export interface StaffAccounts {
  /** Anyone with this address, also people who may not sign in, and customers. */
  isEmailTaken(email: string): Promise<boolean>;
  /** Who may sign in as staff; null for everyone else, such as deactivated people. */
  findStaff(personId: number): Promise<SignInPerson | null>;
  /** Throws a `CodedError` for an address that is none. */
  create(trx: Queryable, person: { email: string; name: string; role: StaffRoleName }): Promise<SignInPerson>;
  /** False where no operator would remain. */
  setRole(personId: number, role: StaffRoleName): Promise<boolean>;
}

export interface OidcDeps {
  db: () => Queryable;
  /** Null: staff sign in with passwords and passkeys alone. */
  provider: OidcSettings | null;
  staff: StaffAccounts;
}
