/** Passwords as argon2id (RFC 9106, 19 MiB, 2 passes: OWASP's recommendation), stored as a PHC string. */
import { argon2, createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { ZxcvbnFactory } from '@zxcvbn-ts/core';
import { CodedError, describeError } from '#common/errors/index.ts';
import { presentProvider } from '#service-kit/pages/index.ts';

const derive = promisify(argon2);
/** Memory in KiB and passes over it; `testing/cheap-passwords.ts` alone changes them. */
export const cost = { memory: 19_456, passes: 2, parallelism: 1 };
const tagLength = 32;

/** The PHC string of a new password. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive('argon2id', { message: password, nonce, tagLength, ...cost });
  const parameters = `m=${cost.memory},t=${cost.passes},p=${cost.parallelism}`;
  return `$argon2id$v=19$${parameters}$${unpadded(nonce)}$${unpadded(tag)}`;
}

let unknownHash: Promise<string> | null = null;

/** True for the right password. With `stored` null (unknown email) it does the same work and returns false. */
export async function verifyPassword(stored: string | null, password: string): Promise<boolean> {
  unknownHash ??= hashPassword('unknown');
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(
    stored ?? (await unknownHash),
  );
  if (!match) return false;
  const [, memory, passes, parallelism, nonce, tag] = match;
  const expected = Buffer.from(tag!, 'base64');
  const given = await derive('argon2id', {
    message: password,
    nonce: Buffer.from(nonce!, 'base64'),
    tagLength: expected.length,
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  });
  return timingSafeEqual(given, expected) && stored !== null;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

/** What a password must be (OWASP ASVS 5, 6.2): long, and none that a guesser tries early. No rules of composition. */

export const passwordLengthMin = 12;
const passwordLengthMax = 200;

/** For whom a password is judged: their own name and address must not be in it. */
export interface PasswordOwner {
  email: string;
  name: string;
}

/** Why this password is refused, as a sentence that says what to do; null when it is good. */
export async function passwordFault(
  password: string,
  owner: PasswordOwner,
  breached: BreachedPasswords = noBreachedPasswords,
): Promise<string | null> {
  const length = [...password].length;
  if (length < passwordLengthMin || length > passwordLengthMax)
    return `A password has ${passwordLengthMin} to ${passwordLengthMax} characters.`;
  const words = wordsOf(owner);
  if (isMadeOf(password, words))
    return 'Choose a password without your name, your email address and the name of this service.';
  if (await isEasilyGuessed(password, words))
    return 'This password is common or follows a pattern. Choose several words that do not belong together.';
  if ((await isLeaked(password)) || (await breached.has(password)))
    return 'This password stands in a list of known leaks. Choose another one, and change it where else you use it.';
  return null;
}

const productNames = ['svc', 'operations', 'monitor', 'virtualservers'];
/** What a guesser adds to a known word. */
const remainderMin = 8;

/** The words that belong to this person and this service, the longest first. */
function wordsOf({ email, name }: PasswordOwner): string[] {
  const [local = '', domain = ''] = email.split('@');
  const own = [email, local, ...local.split(/[.+_-]/), domain, domain.split('.')[0]!, ...name.split(/\s+/)];
  return [...[...own, presentProvider().name].map(fold), ...productNames]
    .filter((word) => word.length >= 3)
    .sort((a, b) => b.length - a.length);
}

/** True when little is left of the password without these words. */
function isMadeOf(password: string, words: readonly string[]): boolean {
  const folded = fold(password);
  const rest = words.reduce((text, word) => text.replaceAll(word, ''), folded);
  return rest.length < folded.length && rest.length < remainderMin;
}

const fold = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

// How early a guesser would come to a password, by an offline list of some fifty thousand common passwords and the
// patterns that people make of them (zxcvbn). The list is loaded when a password is first set, not at start.

/** A billion guesses: what a slow hash withstands when a database is stolen. */
const guessesMin = 1e9;
/**
 * One word of any language with a year and a few signs around it: what people make of a rule that asks for all of these. Random
 * hexadecimal digits, where letters are few and others many, are not that.
 */
const wordAndYear = /^(?=.*(19|20)\d\d)(?=\p{L}*(\P{L}\p{L}*){4,8}$)\P{L}*\p{L}{3,12}\P{L}*$/u;
/** Longer passwords are judged by their beginning, because the time grows with the square of the length. */
const judgedLengthMax = 64;

let estimator: Promise<ZxcvbnFactory> | null = null;

/** True for a password that a guesser with the list tries among the first. `words` are those of its person. */
async function isEasilyGuessed(password: string, words: readonly string[]): Promise<boolean> {
  if (wordAndYear.test(password)) return true;
  estimator ??= load();
  const { guesses } = (await estimator).check(password.slice(0, judgedLengthMax), [...words]);
  return guesses < guessesMin;
}

async function load(): Promise<ZxcvbnFactory> {
  const [{ ZxcvbnFactory }, { adjacencyGraphs, dictionary }] = await Promise.all([
    import('@zxcvbn-ts/core'),
    import('@zxcvbn-ts/language-common'),
  ]);
  return new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });
}

// Passwords of known leaks, by a list that the operator keeps: SHA-1 digests in ascending order, one a line with its
// count, as the downloader of "Pwned Passwords" (Have I Been Pwned) writes it.
//
// The list has tens of gigabytes, so it is searched on disk by halves, in some forty reads. No password leaves the
// machine. A list that can't be read refuses new passwords instead of letting all pass.

export interface BreachedPasswords {
  has(password: string): Promise<boolean>;
}

/** Where no list is set: the common passwords that every program knows are refused all the same. */
export const noBreachedPasswords: BreachedPasswords = { has: async () => false };

const hexLength = 40;
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
    const found = text.slice(begin, begin + hexLength);
    if (found === digest) return true;
    if (found < digest) from = end < 0 ? to : at + end + 1;
    else to = middle;
  }
  return false;
}

// Whether a password is one of the most frequent ones of known leaks: those of the top million that are long enough to
// be accepted at all. The file beside holds the first eight bytes of their SHA-256 digests, in ascending order;
// tools/leaked-passwords.ts makes it. It is read when a password is first set.

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
