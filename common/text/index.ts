/** Text of one line that shows as it is. Names come from people, hosts and services, and stand on pages, in mails and in files. */

/** Control characters, line separators, and what turns the direction of writing; inside a character class of a `RegExp`. */
export const unseenCharacters =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';

const unseen = new RegExp(`[${unseenCharacters}]`);
const allUnseen = new RegExp(`[${unseenCharacters}]+`, 'g');

/** False for a text with characters that are not seen or change how others are shown. */
export function isPlainLine(text: string): boolean {
  return !unseen.test(text);
}

/** The text in one line: what is not seen is a space. */
export function oneLine(text: string): string {
  return text.replace(allUnseen, ' ').trim();
}
