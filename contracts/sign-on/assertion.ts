/**
 * The signed assertion of the issuer about its operator: `svcso1.<payload>.<signature>`.
 *
 * The payload is base64url of UTF-8 JSON; the signature is base64url of the Ed25519 signature over the ASCII bytes of
 * everything before the second dot. Nothing of the payload is read before the signature holds.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { keyIdOf } from './key-text.ts';
import { isTargetPath } from './paths.ts';

const version = 'svcso1';
/** From `issued_at` to `expires_at`, at most. */
export const assertionSeconds = 60;
/** By how much the clocks of the two programs may differ. */
export const clockSkewSeconds = 30;
export const assertionLengthMax = 8_192;

const Digest = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });
const Seconds = Type.Integer({ minimum: 0, maximum: 99_999_999_999 });

const Payload = Type.Object(
  {
    issuer: Digest,
    audience: Digest,
    operator_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    operator_email: Type.String({ minLength: 1, maxLength: 320 }),
    issued_at: Seconds,
    expires_at: Seconds,
    nonce: Digest,
    state: Digest,
    path: Type.String({ maxLength: 2_000 }),
    authenticated_at: Seconds,
    second_factor: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type VerifiedAssertion = Static<typeof Payload>;

/** What an issuer says; keys make `issuer`, and the times follow from `issued_at`. */
export type Assertion = Omit<VerifiedAssertion, 'issuer' | 'expires_at'>;

/** Why an assertion is refused. */
export type AssertionFault =
  /** No assertion, changed, or signed by another key: these are not told apart. */
  | 'not_genuine'
  | 'wrong_audience'
  | 'expired'
  | 'not_yet_valid'
  /** The path is none that a sign-on may lead to. */
  | 'bad_path';

/** Throws `TypeError` for what no receiver would take. */
export function signAssertion(key: KeyObject, publicKey: KeyObject, assertion: Assertion): string {
  const payload = {
    issuer: keyIdOf(publicKey),
    ...assertion,
    expires_at: assertion.issued_at + assertionSeconds,
  };
  if (!Value.Check(Payload, payload) || !isTargetPath(payload.path))
    throw new TypeError('not an assertion that may be signed');
  const signed = `${version}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
  return `${signed}.${sign(null, Buffer.from(signed, 'ascii'), key).toString('base64url')}`;
}

export interface VerifyOptions {
  /** The issuer's key. */
  key: KeyObject;
  /** The receiver's own key id. */
  audience: string;
  nowSeconds: number;
}

/** The assertion of the issuer to this receiver, or why it is refused. Whether it was used before is not known here. */
export function verifyAssertion(text: string, options: VerifyOptions): VerifiedAssertion | AssertionFault {
  const payload = openPayload(text, options.key);
  if (payload === null || payload.issuer !== keyIdOf(options.key)) return 'not_genuine';
  if (payload.audience !== options.audience) return 'wrong_audience';
  const { issued_at: issuedAt, expires_at: expiresAt, authenticated_at: authenticatedAt } = payload;
  if (expiresAt <= issuedAt || expiresAt - issuedAt > assertionSeconds || authenticatedAt > issuedAt)
    return 'not_genuine';
  if (options.nowSeconds >= expiresAt + clockSkewSeconds) return 'expired';
  if (options.nowSeconds < issuedAt - clockSkewSeconds) return 'not_yet_valid';
  return isTargetPath(payload.path) ? payload : 'bad_path';
}

function openPayload(text: string, key: KeyObject): VerifiedAssertion | null {
  if (text.length > assertionLengthMax) return null;
  const parts = /^(svcso1\.([A-Za-z0-9_-]+))\.([A-Za-z0-9_-]{86})$/.exec(text);
  if (parts === null) return null;
  const [, signed, payload, signature] = parts as unknown as [string, string, string, string];
  const bytes = Buffer.from(signature, 'base64url');
  // The last character holds four bits that belong to nothing: one spelling alone is taken.
  if (bytes.toString('base64url') !== signature) return null;
  if (!verify(null, Buffer.from(signed, 'ascii'), key, bytes)) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    return Value.Check(Payload, value) ? value : null;
  } catch {
    return null;
  }
}
