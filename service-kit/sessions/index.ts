import { createHash, randomBytes } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { emailDigest, type Session, type SessionProof } from './session.ts';
import * as store from './store.ts';

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
  hashPassword,
  noBreachedPasswords,
  type PasswordOwner,
  passwordFault,
  passwordLengthMin,
  verifyPassword,
} from './passwords.ts';
export { browserName, foldEmail, type Session, type SessionProof, type SessionSummary } from './session.ts';
export { csrfFault, otherSiteFault } from './token-mask.ts';

/** Where a session was started from, for the list of sessions. */
export interface SessionOrigin {
  source: string;
  userAgent: string | null;
}

export interface SignInAttempt {
  /** It was no failed guess. */
  giveBack(): Promise<void>;
}

export type Sessions = ReturnType<typeof createSessions>;

/** One source alone can't use up the attempts of an email, so it locks out only itself. */
const sourcesPerEmail = 5;
/** A code has a million values, three of which are right at a time. */
const codeFailuresMax = 5;

export function createSessions(options: {
  db: () => Queryable;
  /** Cookie name; `__Host-` is put before it where the site is served by https. */
  cookieName: string;
  isHttps: boolean;
  idleHours?: number;
  absoluteHours?: number;
  /** Failed sign-ins of one source in ten minutes before further ones are refused unread; five times as many of an email. */
  failuresMax?: number;
}) {
  const cookieName = options.isHttps ? `__Host-${options.cookieName}` : options.cookieName;
  const idleHours = options.idleHours ?? 12;
  const absoluteHours = options.absoluteHours ?? 24 * 14;
  const failuresMax = options.failuresMax ?? 20;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${options.isHttps ? '; Secure' : ''}`;
  const deviceCookie = `${cookieName}_device`;
  /** The digest of this browser's secret when this person has signed in with it. */
  const knownDevice = async (email: string, cookieHeader: string | undefined) => {
    const secret = readCookie(cookieHeader, deviceCookie);
    if (secret === null) return null;
    const isKnown = await store.hasDevice(options.db(), digest(secret), emailDigest(email), deviceDays);
    return isKnown ? digest(secret).toString('hex') : null;
  };
  const secretOf = (cookieHeader: string | undefined) => readCookie(cookieHeader, cookieName);
  const currentDigest = (cookieHeader: string | undefined) => {
    const secret = secretOf(cookieHeader);
    return secret === null ? null : digest(secret);
  };
  return {
    cookieName,
    /** Starts a session; returns the value of `Set-Cookie`. */
    async start(
      personId: number,
      origin?: SessionOrigin,
      proof: SessionProof = { hasSecondFactor: false },
    ): Promise<string> {
      const secret = newSecret();
      const csrfToken = randomBytes(24).toString('base64url');
      const made = { digest: digest(secret), personId, csrfToken, absoluteHours };
      await store.insertSession(options.db(), { ...made, ...proof, ...shortened(origin) });
      return `${cookieName}=${secret}; ${attributes}; Max-Age=${absoluteHours * 3600}`;
    },
    /**
     * The session of a request's `Cookie` header, or null. Reading it counts as use, which keeps an idle session alive,
     * unless `isActivity` is false.
     */
    async read(
      cookieHeader: string | undefined,
      { isActivity = true }: { isActivity?: boolean } = {},
    ): Promise<Session | null> {
      const secret = secretOf(cookieHeader);
      return secret === null ? null : store.findSession(options.db(), digest(secret), idleHours, isActivity);
    },
    /**
     * Notes that the person of this session has proved who they are once more. The session gets a new secret; returns the
     * value of `Set-Cookie`, or null when there is no such session. `hasSecondFactor`: they did it by a second factor.
     */
    async confirm(cookieHeader: string | undefined, hasSecondFactor = false): Promise<string | null> {
      const old = currentDigest(cookieHeader);
      if (old === null) return null;
      const secret = newSecret();
      const seconds = await store.renewSession(options.db(), old, digest(secret), hasSecondFactor);
      return seconds === null ? null : `${cookieName}=${secret}; ${attributes}; Max-Age=${seconds}`;
    },
    /** Ends the request's session; returns a `Set-Cookie` that clears the cookie. */
    async end(cookieHeader: string | undefined): Promise<string> {
      const secret = secretOf(cookieHeader);
      if (secret !== null) await store.deleteSession(options.db(), digest(secret));
      return `${cookieName}=; ${attributes}; Max-Age=0`;
    },
    /** Whether a session has neither ended nor expired. */
    isLive: (sessionId: string) => store.isLiveSession(options.db(), sessionId, idleHours),
    /** Ends one session of a person; false when they have no such session. */
    endOne: (personId: number, sessionId: string) => store.deleteSessionOf(options.db(), personId, sessionId),
    /** Ends all sessions of a person, as after a changed password. */
    endAll: (personId: number) => store.deleteSessionsOf(options.db(), personId),
    /** Ends the person's sessions but the one of this request. */
    endOthers: (personId: number, cookieHeader: string | undefined) =>
      store.deleteSessionsOf(options.db(), personId, currentDigest(cookieHeader)),
    /** The living sessions of a person, the last used first. */
    list: (personId: number, cookieHeader: string | undefined) =>
      store.listSessions(options.db(), personId, currentDigest(cookieHeader), idleHours),
    /**
     * To be asked before the password is looked at; null when this email or source has failed too often. A browser in
     * which this person has signed in before has a count of its own, so that failures of strangers do not lock the owner
     * out. An attempt counts as failed from here on until it is given back, so that many at once can't pass the limit
     * together.
     */
    async beginAttempt(email: string, source: string, cookieHeader?: string): Promise<SignInAttempt | null> {
      const device = await knownDevice(email, cookieHeader);
      const asked =
        device === null
          ? {
              [`email:${emailDigest(email)}`]: failuresMax * sourcesPerEmail,
              [`source:${source}`]: failuresMax,
            }
          : { [`device:${device}`]: failuresMax };
      const window = await store.takeAttempt(options.db(), asked);
      if (window === null) return null;
      return { giveBack: () => store.giveBack(options.db(), Object.keys(asked), window) };
    },
    /** The same for a code of a second factor: five failures in ten minutes, apart for browsers that are known. */
    async beginCode(email: string, cookieHeader: string | undefined): Promise<SignInAttempt | null> {
      const device = await knownDevice(email, cookieHeader);
      const bucket = device === null ? `code:${emailDigest(email)}` : `code-device:${device}`;
      const window = await store.takeAttempt(options.db(), { [bucket]: codeFailuresMax });
      return window === null ? null : { giveBack: () => store.giveBack(options.db(), [bucket], window) };
    },
    /** Counts one of something that is limited, such as mails to an address; false when there were too many. */
    async countUse(bucket: string, usesMax: number): Promise<boolean> {
      return (await store.takeAttempt(options.db(), { [bucket]: usesMax })) !== null;
    },
    /** After a sign-in: the value of `Set-Cookie` by which this browser is known again; null when it is already. */
    async knowDevice(email: string, cookieHeader: string | undefined): Promise<string | null> {
      if ((await knownDevice(email, cookieHeader)) !== null) return null;
      const secret = newSecret();
      await store.insertDevice(options.db(), digest(secret), emailDigest(email), deviceDays);
      return `${deviceCookie}=${secret}; ${attributes}; Max-Age=${deviceDays * 86_400}`;
    },
  };
}

/** Ends all sessions of a person, within the transaction of what makes them invalid. */
export function endSessions(tx: Queryable, personId: number): Promise<void> {
  return store.deleteSessionsOf(tx, personId);
}

/** Forgets the browsers that have signed in with an email. */
export function forgetDevices(tx: Queryable, email: string): Promise<void> {
  return store.deleteDevices(tx, emailDigest(email));
}

const deviceDays = 180;
const userAgentMax = 300;

const newSecret = () => randomBytes(32).toString('base64url');

function shortened(origin: SessionOrigin | undefined): { source: string | null; userAgent: string | null } {
  return { source: origin?.source ?? null, userAgent: origin?.userAgent?.slice(0, userAgentMax) ?? null };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The value of one of our cookies, all of which hold a secret of 43 characters. */
export function readCookie(header: string | undefined, name: string): string | null {
  for (const part of (header ?? '').split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim() === name) {
      const value = part.slice(equals + 1).trim();
      return /^[A-Za-z0-9_-]{43}$/.test(value) ? value : null;
    }
  }
  return null;
}
