import type { RequestOrigin } from '#service-kit/http/index.ts';

/** A person who may sign in, as far as these pages know them. */
export interface SignInPerson {
  id: number;
  email: string;
  name: string;
}

/** As the audit trail names it. */
export type OwnOperation =
  | 'session.start'
  | 'session.end'
  | 'session.end_one'
  | 'session.end_others'
  | 'second_factor.add_app'
  | 'second_factor.remove_app'
  | 'second_factor.add_passkey'
  | 'second_factor.remove_passkey'
  | 'second_factor.renew_recovery_codes';

/** The people of a program. Deactivated ones do not exist here. */
export interface SignInPeople {
  /** The person with this email and password, or null; same time and answer for every reason. */
  checkPassword(email: string, password: string): Promise<SignInPerson | null>;
  find(personId: number): Promise<SignInPerson | null>;
  findByEmail(email: string): Promise<SignInPerson | null>;
  /** The person of a link that sets a password; null for a link that does not work. Uses nothing up. */
  findByLink(secret: string): Promise<SignInPerson | null>;
  /**
   * Uses the link up, sets the password and ends all sessions of its person; null for a link that does not work. Throws
   * a `CodedError` ending in `.invalid` for a password that is refused.
   */
  setPasswordByLink(secret: string, password: string, origin: RequestOrigin): Promise<SignInPerson | null>;
  /** Writes what a person did with their own sessions and second factors to the audit trail. */
  noteOwn(personId: number, operation: OwnOperation, origin: RequestOrigin, after?: object): Promise<void>;
  /** Where a person goes after signing in, unless they wanted to go elsewhere. */
  landingOf(personId: number): Promise<string>;
}
