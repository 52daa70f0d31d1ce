/**
 * Single sign-on with the other program's console, without a cookie or a password in common (`contracts/sign-on`).
 *
 * An operator who is signed in there is signed in here, as the person that their account is linked with. Trust is set by
 * an operator on both sides, by public keys; linking is an act of its own and never follows from an email address.
 * A sign-on gives what a password gives: the second factor, the lengths of sessions, roles and deactivation stay ours,
 * and a session that was confirmed long ago is not confirmed here. An assertion is accepted once.
 */

import type { Clock } from '#common/clock/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { signingKey } from './store.ts';

export { registerSignOnSettings } from './settings.routes.ts';
export { registerSignOn, registerSignOnPages } from './sign-on.routes.ts';
export { createSignOn, type SignOn, seedSignOn } from './sign-on.ts';

/** Where sign-on keeps sealed secrets. */
export const signOnSecrets = [signingKey] as const;

/** `Actor`: the actors of the program. */
export interface SignOnDeps<Actor extends AuditActor> {
  db: () => Queryable;
  clock: Clock;
  secrets: Secrets;
  /** An operator of this program who may sign in; null for everyone else, such as customers and deactivated people. */
  findOperator: (personId: number) => Promise<SignInPerson | null>;
  /** Throws for actors that may not change who is trusted. */
  requireOperator: (actor: Actor) => void;
  /** Also http addresses of other machines. */
  allowsInsecureHttp: boolean;
}
