/**
 * Whether a password is one of the most frequent ones of known leaks: those of the top million that are long enough to
 * be accepted at all. The file beside holds the first eight bytes of their SHA-256 digests, in ascending order;
 * tools/leaked-passwords.ts makes it. It is read when a password is first set.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

export const digestLength = 8;

/** Upper and lower case are one: who changes the case of a leaked password has a leaked password. */
export function digestOfLeaked(password: string): Buffer {
  return createHash('sha256').update(password.toLowerCase()).digest().subarray(0, digestLength);
}

let list: Promise<Buffer> | null = null;

export async function isLeaked(password: string): Promise<boolean> {
  list ??= readFile(new URL('./leaked-passwords.bin', import.meta.url));
  const digests = await list;
  const wanted = digestOfLeaked(password);
  let from = 0;
  let to = digests.length / digestLength;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const order = wanted.compare(digests, middle * digestLength, (middle + 1) * digestLength);
    if (order === 0) return true;
    if (order > 0) from = middle + 1;
    else to = middle;
  }
  return false;
}
