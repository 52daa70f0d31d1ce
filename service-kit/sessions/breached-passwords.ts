/**
 * Passwords of known leaks, by a list that the operator keeps: SHA-1 digests in ascending order, one a line with its
 * count, as the downloader of "Pwned Passwords" (Have I Been Pwned) writes it.
 *
 * The list has tens of gigabytes, so it is searched on disk by halves, in some forty reads. No password leaves the
 * machine. A list that can't be read refuses new passwords instead of letting all pass.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError, describeError } from '#common/errors/index.ts';

export interface BreachedPasswords {
  has(password: string): Promise<boolean>;
}

/** Where no list is set: the common passwords that every program knows are refused all the same. */
export const noBreachedPasswords: BreachedPasswords = { has: async () => false };

const digestLength = 40;
/** Longer than two lines. */
const blockBytes = 160;
const linePattern = /^([0-9A-F]{40}):\d+\r?$/;

/** Throws `config.invalid` for a file that is no such list. */
export function createBreachedPasswords(path: string | null, setting: string): BreachedPasswords {
  if (path === null || path === '') return noBreachedPasswords;
  requireList(path, setting);
  return {
    async has(password) {
      const digest = createHash('sha1').update(password).digest('hex').toUpperCase();
      const file = await open(path, 'r');
      try {
        return await search(file, digest);
      } finally {
        await file.close();
      }
    },
  };
}

function requireList(path: string, setting: string): void {
  const block = Buffer.alloc(blockBytes);
  let text: string;
  try {
    const file = openSync(path, 'r');
    try {
      text = block.toString('latin1', 0, readSync(file, block, 0, blockBytes, 0));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new CodedError('config.invalid', `${setting}: ${path} can't be read: ${describeError(error)}.`);
  }
  const [first, second] = text.split('\n').map((line) => linePattern.exec(line)?.[1]);
  if (first === undefined || (second !== undefined && second <= first))
    throw new CodedError(
      'config.invalid',
      `${setting}: ${path} is no list of SHA-1 digests in ascending order. Make it with the downloader of haveibeenpwned.com/Passwords.`,
    );
}

/** The line that begins at or after the middle decides which half goes on. */
async function search(file: FileHandle, digest: string): Promise<boolean> {
  const block = Buffer.alloc(blockBytes);
  let from = 0;
  let to = (await file.stat()).size;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    // One byte earlier: where it is a line's end, a line begins right at the middle.
    const at = middle === from ? from : middle - 1;
    const { bytesRead } = await file.read(block, 0, blockBytes, at);
    const text = block.toString('latin1', 0, bytesRead);
    const begin = middle === from ? 0 : text.indexOf('\n') + 1;
    const isAfterLast = middle !== from && begin === 0;
    if (isAfterLast || at + begin >= to) {
      to = middle;
      continue;
    }
    const end = text.indexOf('\n', begin);
    const found = text.slice(begin, begin + digestLength);
    if (found === digest) return true;
    if (found < digest) from = end < 0 ? to : at + end + 1;
    else to = middle;
  }
  return false;
}
