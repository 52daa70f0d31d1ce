/**
 * Browser sessions and passwords for people: portal, consoles.
 *
 * The cookie holds a random secret, the database its digest. Sign-in makes a new session (no fixation), sign-out and a
 * changed password end them. Every form carries the session's CSRF token, and unsafe requests must come from our own
 * pages (`Sec-Fetch-Site`, else `Origin`).
 */

export { csrfFault, otherSiteFault } from './csrf.ts';
export { hashPassword, verifyPassword } from './passwords.ts';
export {
  createSessions,
  type Session,
  type SessionSummary,
  type Sessions,
  type SessionsOptions,
  type SignInAttempt,
} from './sessions.ts';
