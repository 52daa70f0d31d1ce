/**
 * The form of sealed bytes: AES-256-GCM with associated data.
 *
 * A sealed secret is one format byte, the data key's id (4 bytes, big endian), a random nonce (12), the ciphertext and
 * the tag (16). The associated data is the header and the place of the secret, so bytes that were moved to another
 * table, column or row, or given another key id, do not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const cipherName = 'aes-256-gcm';
const format = 1;
const headerBytes = 5;
const nonceBytes = 12;
const tagBytes = 16;

export const keyBytes = 32;

/** The first bytes of everything that this data key has sealed. Ids compare as these bytes do. */
export function headerOf(keyId: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt8(format, 0);
  header.writeUInt32BE(keyId, 1);
  return header;
}

/** The id of the data key that sealed these bytes; null where they are none of ours. */
export function keyIdOf(sealed: Buffer): number | null {
  if (sealed.length < headerBytes + nonceBytes + tagBytes || sealed[0] !== format) return null;
  return sealed.readUInt32BE(1);
}

/** A place as associated data: every part is told from its neighbours. */
export function placeText(...parts: readonly (string | number)[]): string {
  return JSON.stringify(parts);
}

export function sealBytes(key: Buffer, keyId: number, place: string, secret: Buffer): Buffer {
  const header = headerOf(keyId);
  return Buffer.concat([header, encrypt(key, secret, [header, Buffer.from(place)])]);
}

/** Null where the bytes were changed, sealed with another key, or sealed for another place. */
export function openBytes(key: Buffer, place: string, sealed: Buffer): Buffer | null {
  const header = sealed.subarray(0, headerBytes);
  return decrypt(key, sealed.subarray(headerBytes), [header, Buffer.from(place)]);
}

/** Nonce, ciphertext and tag. */
export function encrypt(key: Buffer, plain: Buffer, associated: readonly Buffer[]): Buffer {
  // Random nonces of 96 bits are safe for 2^32 secrets of one key; a data key seals thousands.
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(cipherName, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.concat(associated));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Null where the tag does not fit. */
export function decrypt(key: Buffer, bytes: Buffer, associated: readonly Buffer[]): Buffer | null {
  if (bytes.length < nonceBytes + tagBytes) return null;
  const end = bytes.length - tagBytes;
  const decipher = createDecipheriv(cipherName, key, bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(Buffer.concat(associated));
  decipher.setAuthTag(bytes.subarray(end));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, end)), decipher.final()]);
  } catch {
    return null;
  }
}
