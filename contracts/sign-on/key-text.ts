/** Public keys as people copy them from one console to the other, and the ids that assertions name them by. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto';

/** In front of the 32 bytes of an Ed25519 public key in base64url. */
const prefix = 'svcpub_';
/** The bytes before the key in its DER form (RFC 8410). */
const derHead = Buffer.from('302a300506032b6570032100', 'hex');
const keyBytes = 32;

/** `svcpub_` and 43 characters. */
export function keyText(key: KeyObject): string {
  return `${prefix}${rawOf(key).toString('base64url')}`;
}

/** The key of such a text; null for every other text, also for another spelling of the same bytes. */
export function parseKeyText(text: string): KeyObject | null {
  if (!text.startsWith(prefix)) return null;
  const raw = Buffer.from(text.slice(prefix.length), 'base64url');
  if (raw.length !== keyBytes || `${prefix}${raw.toString('base64url')}` !== text) return null;
  return createPublicKey({ key: Buffer.concat([derHead, raw]), format: 'der', type: 'spki' });
}

/** The SHA-256 of the key's 32 bytes in base64url, 43 characters: the name of a program in assertions. */
export function keyIdOf(key: KeyObject): string {
  return createHash('sha256').update(rawOf(key)).digest('base64url');
}

function rawOf(key: KeyObject): Buffer {
  if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('not an Ed25519 key');
  return key.export({ format: 'der', type: 'spki' }).subarray(derHead.length);
}
