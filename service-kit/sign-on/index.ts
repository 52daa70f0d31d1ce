/**
 * Single sign-on with the other program's console, without a cookie or a password in common (`contracts/sign-on`).
 *
 * An operator who is signed in there is signed in here, as the person that their account is linked with. Trust is set by
 * an operator on both sides, by public keys; linking is an act of its own and never follows from an email address.
 * A sign-on gives what a password gives: the second factor, the lengths of sessions, roles and deactivation stay ours,
 * and a session that was confirmed long ago is not confirmed here. An assertion is accepted once.
 */
import { signingKey } from './store.ts';

export { seedSignOn } from './seed-sign-on.ts';
export { registerSignOnSettings } from './settings.routes.ts';
export { registerSignOn } from './sign-on.routes.ts';
export { createSignOn, type SignOn } from './sign-on.ts';
export { registerSignOnPages } from './sign-on-pages.routes.ts';

/** Where sign-on keeps sealed secrets. */
export const signOnSecrets = [signingKey] as const;
