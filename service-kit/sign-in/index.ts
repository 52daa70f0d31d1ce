/**
 * Signing in, one's own password and sessions: the same pages for operations' people and the monitor's.
 *
 * No answer says whether an email belongs to a person. Links that set a password are mailed, work once, and opening
 * one never signs a person in.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from './people.ts';
import type { DemoRole } from './sign-in.routes.ts';

export { type AccountPagesDeps, type AccountPagesOptions, registerAccountPages } from './account.routes.ts';
export { type ConfirmDeps, confirmIdentity } from './confirm-identity.ts';
export {
  accessLinkMail,
  addedAsOwnerMail,
  factorsChangedMail,
  invitationMail,
  linkDelivery,
} from './mails.ts';
export type { OwnOperation, SignInPeople, SignInPerson } from './people.ts';
export { alone } from './reset.routes.ts';
export { completeSignIn, proceedSignIn } from './second-step.routes.ts';
export { type DemoRole, demoRolesOf, registerSignIn } from './sign-in.routes.ts';
export { requireStepUp, stepUpOf } from './step-up.ts';

/** What these pages know of the OpenID provider (`service-kit/oidc`). */
export interface SignInProvider {
  /** Its host; null where there is none. */
  label: string | null;
  /** True for a person who may sign in by the provider only. */
  governs(personId: number): Promise<boolean>;
}

/** What signing in needs from the program. */
export interface SignInDeps {
  db: () => Queryable;
  /** "Virtual servers", "Monitor". */
  area: string;
  people: SignInPeople;
  sessions: Sessions;
  factors: SecondFactors;
  post: Post;
  clock: Clock;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  /** The OpenID provider at which staff may sign in. */
  oidc: SignInProvider;
  /** People whom one click signs in (`demoRolesOf`). */
  demoRoles?: readonly DemoRole[];
}
