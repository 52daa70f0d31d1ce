/**
 * Masks the token of forms, so that it is never twice the same text in pages.
 *
 * The size of a compressed page tells whether a text that a stranger chose stands in it a second time (BREACH). A token
 * under a new random mask has nothing in common with the one of the page before.
 */
import { randomBytes } from 'node:crypto';

/** Between mask and masked token; no token has it. */
const separator = '.';

/** A random mask and the token under it, as text for a form. */
export function maskToken(token: string): string {
  const bytes = Buffer.from(token);
  const mask = randomBytes(bytes.length);
  return `${mask.toString('base64url')}${separator}${xor(bytes, mask).toString('base64url')}`;
}

/** The token out of `maskToken`; a text that is not masked is returned as it is. */
export function unmaskToken(given: string): string {
  const [mask, masked, rest] = given.split(separator);
  if (mask === undefined || masked === undefined || rest !== undefined) return given;
  const [a, b] = [Buffer.from(mask, 'base64url'), Buffer.from(masked, 'base64url')];
  return a.length === b.length ? xor(a, b).toString() : given;
}

function xor(a: Buffer, b: Buffer): Buffer {
  return Buffer.from(a.map((byte, index) => byte ^ b[index]!));
}
