/** Time-based one-time passwords: SHA-1, six digits, 30 seconds, which every authenticator app reads. */
import { Secret, TOTP } from 'otpauth';

const periodMs = 30_000;
/** Steps before and after now that are accepted, for clocks that are a little off. */
const stepsOff = 1;

/** A new shared secret of 160 bits in Base32. */
export function createTotpSecret(): string {
  return new Secret({ size: 20 }).base32;
}

/** The URI that an authenticator app reads from a QR code. */
export function totpUri(secret: string, issuer: string, label: string): string {
  return totpOf(secret, { issuer, label }).toString();
}

/** The 30-second step that a code belongs to; null for a code that is wrong now. Comparison takes constant time. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = totpOf(secret, {}).validate({ token, timestamp: nowMs, window: stepsOff });
  return delta === null ? null : Math.floor(nowMs / periodMs) + delta;
}

function totpOf(secret: string, names: { issuer?: string; label?: string }): TOTP {
  return new TOTP({
    ...names,
    algorithm: 'SHA1',
    digits: 6,
    period: periodMs / 1000,
    secret: Secret.fromBase32(secret),
  });
}
