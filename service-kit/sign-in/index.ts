/**
 * Signing in, one's own password and sessions: the same pages for operations' people and the monitor's.
 *
 * No answer says whether an email belongs to a person. Links that set a password are mailed, work once, and opening
 * one never signs a person in.
 */

export { registerAccountPages } from './account.routes.ts';
export type { AccountPagesDeps } from './account-options.ts';
export { completeSignIn } from './complete-sign-in.ts';
export { type ConfirmDeps, confirmIdentity } from './confirm-identity.ts';
export { type DemoRole, demoRolesOf } from './demo.routes.ts';
export type { SignInDeps } from './deps.ts';
export { linkDelivery } from './link-delivery.ts';
export { accessLinkMail, addedAsOwnerMail, factorsChangedMail, invitationMail } from './mails.ts';
export type { OwnOperation, SignInPeople, SignInPerson } from './people.ts';
export { alone } from './reset.page.ts';
export { proceedSignIn } from './second-step.routes.ts';
export { registerSignIn } from './sign-in.routes.ts';
export { requireStepUp, stepUpOf } from './step-up.ts';
