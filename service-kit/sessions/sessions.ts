import { createHash, randomBytes } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface Session {
  personId: number;
  csrfToken: string;
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
  /** False when this e-mail or source has failed too often; ask before looking at the password. */
  maySignIn(email: string, source: string): Promise<boolean>;
  noteFailure(email: string, source: string): Promise<void>;
}

export function createSessions(options: SessionsOptions): Sessions {
  const cookieName = options.isHttps ? `__Host-${options.cookieName}` : options.cookieName;
  const idleHours = options.idleHours ?? 12;
  const absoluteHours = options.absoluteHours ?? 24 * 14;
  const failuresMax = options.failuresMax ?? 20;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${options.isHttps ? '; Secure' : ''}`;
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
    async maySignIn(email, source) {
      return (await store.countFailures(options.db(), buckets(email, source))) < failuresMax;
    },
    noteFailure: (email, source) => store.addFailure(options.db(), buckets(email, source)),
  };
}

function buckets(email: string, source: string): string[] {
  // E-mails are hashed: what somebody mistyped into the field may have been a password.
  return [`email:${digest(email.trim().toLowerCase()).toString('hex')}`, `source:${source}`];
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
