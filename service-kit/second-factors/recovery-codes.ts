import { createHash, randomInt } from 'node:crypto';

/** How many a person gets at a time. */
export const recoveryCodesMax = 8;
const alphabet = 'abcdefghijkmnpqrstuvwxyz23456789';
const groups = 4;
const groupLength = 6;

/** Codes of 120 random bits each, in groups for reading; no letter that looks like a digit. */
export function createRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodesMax }, () =>
    Array.from({ length: groups }, () =>
      Array.from({ length: groupLength }, () => alphabet[randomInt(alphabet.length)]).join(''),
    ).join('-'),
  );
}

/** SHA-256 of the code without spaces, dashes and capitals, as people copy it. */
export function digestRecoveryCode(text: string): Buffer {
  return createHash('sha256')
    .update(text.toLowerCase().replace(/[^a-z0-9]/g, ''))
    .digest();
}
