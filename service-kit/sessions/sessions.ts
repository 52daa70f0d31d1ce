import { createHash, randomBytes } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface Session {
  personId: number;
  csrfToken: string;
}

export interface SessionSummary {
  startedAt: Date;
  lastSeenAt: Date;
  /** The one that asks. */
  isCurrent: boolean;
}

export interface SignInAttempt {
  /** It was no failed guess. */
  giveBack(): Promise<void>;
}

export interface SessionsOptions {
  db: () => Queryable;
  /** Cookie name; `__Host-` is put before it where the site is served by https. */
  cookieName: string;
  isHttps: boolean;
  idleHours?: number;
  absoluteHours?: number;
  /** Failed sign-ins in ten minutes, per e-mail and per source, before further ones are refused unread. */
  failuresMax?: number;
}

export interface Sessions {
  readonly cookieName: string;
  /** Starts a session; returns the value of `Set-Cookie`. */
  start(personId: number): Promise<string>;
  /** The session of a request's `Cookie` header, or null. */
  read(cookieHeader: string | undefined): Promise<Session | null>;
  /** Ends the request's session; returns a `Set-Cookie` that clears the cookie. */
  end(cookieHeader: string | undefined): Promise<string>;
  /** Ends all sessions of a person, as after a changed password. */
  endAll(personId: number): Promise<void>;
  /** Ends the person's sessions but the one of this request. */
  endOthers(personId: number, cookieHeader: string | undefined): Promise<void>;
  /** The living sessions of a person, the last used first. */
  list(personId: number, cookieHeader: string | undefined): Promise<SessionSummary[]>;
  /**
   * To be asked before the password is looked at; null when this e-mail or source has failed too often. A browser in which
   * this person has signed in before has a count of its own: strangers' failures don't keep the owner out. An attempt
   * counts as failed from here on until it is given back, so that many at once can't pass the limit together.
   */
  beginAttempt(email: string, source: string, cookieHeader?: string): Promise<SignInAttempt | null>;
  /** After a sign-in: the value of `Set-Cookie` by which this browser is known again; null when it is already. */
  knowDevice(email: string, cookieHeader: string | undefined): Promise<string | null>;
}

export function createSessions(options: SessionsOptions): Sessions {
  const cookieName = options.isHttps ? `__Host-${options.cookieName}` : options.cookieName;
  const idleHours = options.idleHours ?? 12;
  const absoluteHours = options.absoluteHours ?? 24 * 14;
  const failuresMax = options.failuresMax ?? 20;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${options.isHttps ? '; Secure' : ''}`;
  const deviceCookie = `${cookieName}_device`;
  /** The digest of this browser's secret when this person has signed in with it. */
  const knownDevice = async (email: string, cookieHeader: string | undefined) => {
    const secret = findCookie(cookieHeader, deviceCookie);
    if (secret === null) return null;
    const isKnown = await store.hasDevice(options.db(), digest(secret), emailDigest(email), deviceDays);
    return isKnown ? digest(secret).toString('hex') : null;
  };
  const secretOf = (cookieHeader: string | undefined) => findCookie(cookieHeader, cookieName);
  return {
    cookieName,
    async start(personId) {
      const secret = randomBytes(32).toString('base64url');
      const csrfToken = randomBytes(24).toString('base64url');
      await store.insertSession(options.db(), digest(secret), personId, csrfToken, absoluteHours);
      return `${cookieName}=${secret}; ${attributes}; Max-Age=${absoluteHours * 3600}`;
    },
    async read(cookieHeader) {
      const secret = secretOf(cookieHeader);
      return secret === null ? null : store.findSession(options.db(), digest(secret), idleHours);
    },
    async end(cookieHeader) {
      const secret = secretOf(cookieHeader);
      if (secret !== null) await store.deleteSession(options.db(), digest(secret));
      return `${cookieName}=; ${attributes}; Max-Age=0`;
    },
    endAll: (personId) => store.deleteSessionsOf(options.db(), personId),
    async endOthers(personId, cookieHeader) {
      const secret = secretOf(cookieHeader);
      await store.deleteSessionsOf(options.db(), personId, secret === null ? null : digest(secret));
    },
    list(personId, cookieHeader) {
      const secret = secretOf(cookieHeader);
      return store.listSessions(options.db(), personId, secret === null ? null : digest(secret), idleHours);
    },
    async beginAttempt(email, source, cookieHeader) {
      const asked = buckets(email, source, await knownDevice(email, cookieHeader));
      const window = await store.takeAttempt(options.db(), asked, failuresMax);
      return window === null ? null : { giveBack: () => store.giveBack(options.db(), asked, window) };
    },
    async knowDevice(email, cookieHeader) {
      if ((await knownDevice(email, cookieHeader)) !== null) return null;
      const secret = randomBytes(32).toString('base64url');
      await store.insertDevice(options.db(), digest(secret), emailDigest(email), deviceDays);
      return `${deviceCookie}=${secret}; ${attributes}; Max-Age=${deviceDays * 86_400}`;
    },
  };
}

const deviceDays = 180;

function buckets(email: string, source: string, device: string | null): string[] {
  return [device === null ? `email:${emailDigest(email)}` : `device:${device}`, `source:${source}`].sort();
}

/** E-mails are hashed: what somebody mistyped into the field may have been a password. */
function emailDigest(email: string): string {
  return digest(email.trim().toLowerCase()).toString('hex');
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function findCookie(header: string | undefined, name: string): string | null {
  for (const part of (header ?? '').split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim() === name) {
      const value = part.slice(equals + 1).trim();
      return /^[A-Za-z0-9_-]{43}$/.test(value) ? value : null;
    }
  }
  return null;
}
