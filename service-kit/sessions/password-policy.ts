/** What a password must be (OWASP ASVS 5, 6.2): long, and none that a guesser tries early. No rules of composition. */

export const passwordLengthMin = 12;
const passwordLengthMax = 200;

/** For whom a password is judged: their own name and address must not be in it. */
export interface PasswordOwner {
  email: string;
  name: string;
}

/** Why this password is refused, as a sentence that says what to do; null when it is good. */
export async function passwordFault(password: string, owner: PasswordOwner): Promise<string | null> {
  const length = [...password].length;
  if (length < passwordLengthMin || length > passwordLengthMax)
    return `A password has ${passwordLengthMin} to ${passwordLengthMax} characters.`;
  if (isMadeOf(password, owner))
    return 'Choose a password without your name, your email address and the name of this service.';
  return null;
}

const productNames = ['svc', 'operations', 'monitor', 'virtualservers'];
/** What a guesser adds to a known word. */
const remainderMin = 8;

/** True when little is left of the password without the words that belong to this person and this service. */
function isMadeOf(password: string, { email, name }: PasswordOwner): boolean {
  const folded = fold(password);
  const [local = '', domain = ''] = email.split('@');
  const own = [email, local, ...local.split(/[.+_-]/), domain, domain.split('.')[0]!, ...name.split(/\s+/)];
  const words = [...own.map(fold), ...productNames]
    .filter((word) => word.length >= 3)
    .sort((a, b) => b.length - a.length);
  const rest = words.reduce((text, word) => text.replaceAll(word, ''), folded);
  return rest.length < folded.length && rest.length < remainderMin;
}

const fold = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
