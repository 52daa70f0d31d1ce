import { createHash } from 'node:crypto';

/**
 * The one spelling under which an email address is stored, looked up and counted.
 *
 * Every comparison uses this text as it is. If the database folded case as well, two texts that it takes for one
 * address could have two counts of failures: PostgreSQL makes `i` of `İ`, JavaScript makes `i` and a combining dot.
 */
export function foldEmail(text: string): string {
  return text.trim().toLowerCase();
}

/** Emails are hashed where failures are counted: a person may have typed a password into the field. */
export function emailDigest(email: string): string {
  return createHash('sha256').update(foldEmail(email)).digest('hex');
}
