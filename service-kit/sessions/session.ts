import { createHash } from 'node:crypto';

export interface Session {
  /** Names the session in `isLive` and `endOne`. */
  id: string;
  personId: number;
  csrfToken: string;
  /** The person proved who they are in the last fifteen minutes, by signing in or by confirming. */
  isConfirmed: boolean;
  /** When the person last proved who they are. */
  authenticatedAtMs: number;
  /** A second factor was shown in this session, at sign-in or since. */
  hasSecondFactor: boolean;
  /** The account at the OpenID provider by which it was begun. */
  identityId: number | null;
  /** The provider has not named the person's groups for an hour: it is asked before anything else is shown. */
  isCheckDue: boolean;
}

/** What a person proved before a session is started. */
export interface SessionProof {
  hasSecondFactor: boolean;
  /**
   * When it was proved; absent: just now. A session that follows from another one is no younger than that one: it is
   * confirmed no longer, and ends no later.
   */
  authenticatedAtMs?: number;
  /** The account at the OpenID provider that was used. */
  identityId?: number;
}

export interface SessionSummary {
  /** Names the session in `endOne`. */
  id: string;
  startedAt: Date;
  lastSeenAt: Date;
  source: string | null;
  userAgent: string | null;
  /** The one that asks. */
  isCurrent: boolean;
}

/** A browser's name for people, such as "Firefox on Linux". Only a hint: every program may send what it likes. */
export function browserName(userAgent: string | null): string {
  if (!userAgent) return 'Unknown browser';
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser) return system ? `${browser} on ${system}` : browser;
  const program = /^[A-Za-z][A-Za-z0-9 ._-]{0,30}/.exec(userAgent)?.[0].trim();
  return program ?? 'Unknown browser';
}

/** In this order: most browsers also name those that they descend from. */
const browsers: readonly [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\b(OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Headless)?Chrom(e|ium)\/|\bCriOS\//, 'Chrome'],
  [/\bVersion\/[\d.]+.*\bSafari\//, 'Safari'],
];
const systems: readonly [RegExp, string][] = [
  [/\biPhone\b|\biPad\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

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
