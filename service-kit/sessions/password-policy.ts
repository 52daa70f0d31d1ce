import { type BreachedPasswords, noBreachedPasswords } from './breached-passwords.ts';
import { isEasilyGuessed } from './guessability.ts';
import { isLeaked } from './leaked-passwords.ts';

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
  return [...own.map(fold), ...productNames]
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
