/**
 * Bearer credentials of one shape for customers, admin projects and sensors: `<prefix>_<id>_<secret>`.
 *
 * The stored value is the bare SHA-256 of the secret's exact text (API-2.1.c): not of the decoded bytes, of which
 * base64url has several spellings. The secret may contain `_`, so a token is split at its first two only (API-2.1.1).
 */
import { createHash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

/** `svc`: customer API keys; `svcadm`: admin API tokens; `svcsen`: sensors; `svcread`: read tokens of the monitor. */
export type CredentialPrefix = 'svc' | 'svcadm' | 'svcsen' | 'svcread';

export interface Credential {
  id: string;
  secret: string;
}

export interface MintedCredential extends Credential {
  /** The whole token; shown once, stored nowhere. */
  token: string;
  digest: Buffer;
}

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';
const idLength = 16;
const secretPattern = /^[A-Za-z0-9_-]{43}$/;
const idPattern = /^[a-z0-9]{16}$/;
const tokenLengthMax = 128;
/** What an unknown id is compared with, so that it takes the time of a known one. */
const unknownDigest = createHash('sha256').update('unknown').digest();

/** Makes a credential: a 16-character id and 32 random bytes as base64url. */
export function mintCredential(prefix: CredentialPrefix): MintedCredential {
  let id = '';
  for (let i = 0; i < idLength; i += 1) id += idAlphabet[randomInt(idAlphabet.length)];
  const secret = randomBytes(32).toString('base64url');
  return { id, secret, token: `${prefix}_${id}_${secret}`, digest: digestSecret(secret) };
}

/** Splits a token at its first two underscores; null for anything that this prefix's tokens can't be. */
export function parseCredential(prefix: CredentialPrefix, token: string): Credential | null {
  if (token.length > tokenLengthMax) return null;
  // `split('_', 3)` would drop what follows a third underscore, and half of all secrets hold one.
  const first = token.indexOf('_');
  const second = first < 0 ? -1 : token.indexOf('_', first + 1);
  if (second < 0 || token.slice(0, first) !== prefix) return null;
  const id = token.slice(first + 1, second);
  const secret = token.slice(second + 1);
  return idPattern.test(id) && secretPattern.test(secret) ? { id, secret } : null;
}

/** SHA-256 of the secret's text. */
export function digestSecret(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}

/** Compares in constant time; with no stored digest it does the same work and says no (API-2.1.2). */
export function secretMatches(stored: Uint8Array | null, secret: string): boolean {
  const isEqual = timingSafeEqual(stored ?? unknownDigest, digestSecret(secret));
  return isEqual && stored !== null;
}

/**
 * The token of `Authorization: Bearer …` out of a request's raw headers; null when there is none or it is malformed.
 *
 * Raw, because Node keeps only the first of two `Authorization` headers, and two are a refusal.
 */
export function readBearer(rawHeaders: readonly string[]): string | null {
  let value: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== 'authorization') continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1]!;
  }
  const match = value === null ? null : /^bearer (\S+)$/i.exec(value);
  return match ? match[1]! : null;
}

/** True when the request carries any `Authorization` header at all. */
export function hasAuthorization(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'authorization');
}

/** What forms suggest, and what counts where the field is not sent. */
export const defaultDays = 365;
const dayMs = 86_400_000;

/**
 * When a credential expires by the days of a form: null for one that does not expire, which an empty field asks for.
 * Undefined: the text is no number of days.
 */
export function expiryOf(days: string | undefined, nowMs: number): Date | null | undefined {
  const text = days === undefined ? String(defaultDays) : days.trim();
  if (text === '') return null;
  return /^[1-9]\d{0,3}$/.test(text) ? new Date(nowMs + Number(text) * dayMs) : undefined;
}
