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
export { foldEmail } from './email.ts';
export {
  hashPassword,
  type PasswordOwner,
  passwordFault,
  passwordLengthMin,
  verifyPassword,
} from './passwords.ts';
export { browserName, type Session, type SessionProof, type SessionSummary } from './session.ts';
export { createSessions, endSessions, forgetDevices, readCookie, type Sessions } from './sessions.ts';
export { csrfFault, otherSiteFault } from './token-mask.ts';
