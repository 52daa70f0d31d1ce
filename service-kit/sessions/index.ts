/**
 * Browser sessions and passwords for people: portal, consoles.
 *
 * The cookie holds a random secret, the database its digest. Sign-in makes a new session (no fixation), sign-out and a
 * changed password end them, and a person sees and ends each of theirs. Every form carries the session's CSRF token, and unsafe requests must come from our own
 * pages (`Sec-Fetch-Site`, else `Origin`).
 */

export {
  type BreachedPasswords,
  createBreachedPasswords,
  noBreachedPasswords,
} from './breached-passwords.ts';
export { browserName } from './browser-name.ts';
export { csrfFault, otherSiteFault } from './csrf.ts';
export { foldEmail } from './email.ts';
export { type PasswordOwner, passwordFault, passwordLengthMin } from './password-policy.ts';
export { hashPassword, verifyPassword } from './passwords.ts';
export type { Session, SessionProof, SessionSummary } from './session.ts';
export { createSessions, endSessions, forgetDevices, readCookie, type Sessions } from './sessions.ts';
