/** What a typed text may mean: any spelling of an address, a MAC, a number, the beginnings of words. */
import { type AddressBytes, formatAddress, parseAddress, parsePrefix } from '#common/ip/index.ts';
import { parseMac } from '#monitor/devices/index.ts';

/** Longer texts are cut; no name is longer. */
export const textMax = 100;
/** Further words narrow no more. */
const wordsMax = 6;

export interface Question {
  /** As it was typed, without spaces around. */
  text: string;
  /** Canonical address, when it is one. */
  address: string | null;
  /** First and last address of a prefix or of the beginning of an address. */
  range: { first: string; last: string } | null;
  /** Beginning of a MAC as it is stored; all of it when it is whole. */
  mac: string | null;
  /** A number, for ids. */
  id: number | null;
  /** Lower-case beginnings of words, all of which must fit. */
  words: string[];
  /** Names that the text is below of: `www.example.com` asks for `example.com` as well. */
  names: string[];
}

/** Null for a text that asks for nothing. */
export function parseQuestion(typed: string): Question | null {
  // What no database keeps as text is a space here.
  const text = typed
    .slice(0, textMax)
    .replace(/\p{Cc}|\p{Cs}/gu, ' ')
    .trim();
  const words = text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .slice(0, wordsMax);
  if (words.length === 0) return null;
  // `2001:db8::` is an address too, but who types it means what begins so.
  const bytes = text.endsWith('::') ? null : addressOf(text);
  return {
    text,
    address: bytes ? formatAddress(bytes) : null,
    range: bytes ? null : rangeOf(text),
    mac: macOf(text),
    id: /^(vm[- #]?)?\d{1,15}$/i.test(text) ? Number(text.replace(/\D/g, '')) : null,
    words,
    names: namesOf(text),
  };
}

/** Also with brackets, a port, a zone or a whole length, as addresses are copied out of logs; a mapped one is IPv4. */
function addressOf(text: string): AddressBytes | null {
  const bare = text
    .replace(/^\[([^\]]+)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%[\w.-]+$/, '')
    .replace(/\/(32|128)$/, '');
  const bytes = parseAddress(bare);
  if (bytes?.length !== 16) return bytes;
  const isMapped =
    bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  return isMapped ? bytes.subarray(12) : bytes;
}

function rangeOf(text: string): Question['range'] {
  const prefix = text.includes('/') ? parsePrefix(text) : (partialIpv4(text) ?? partialIpv6(text));
  if (!prefix) return null;
  const last = Uint8Array.from(prefix.bytes);
  for (let bit = prefix.length; bit < last.length * 8; bit += 1) last[bit >> 3]! |= 128 >> (bit & 7);
  return { first: formatAddress(prefix.bytes), last: formatAddress(last) };
}

/** `192`, `192.0` and `192.0.2.` stand for all that begin so; a single digit is more likely a number. */
function partialIpv4(text: string) {
  if (!/^\d{1,3}(\.\d{1,3}){0,2}\.$|^\d{1,3}(\.\d{1,3}){1,2}$|^\d{2,3}$/.test(text)) return null;
  const parts = text.split('.').filter((part) => part !== '');
  return parsePrefix(`${[...parts, '0', '0', '0'].slice(0, 4).join('.')}/${parts.length * 8}`);
}

function partialIpv6(text: string) {
  if (!/^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){0,6}:{0,2}$/i.test(text) || !text.includes(':')) return null;
  const parts = text.split(':').filter((part) => part !== '');
  return parsePrefix(`${parts.join(':')}${parts.length < 8 ? '::' : ''}/${parts.length * 16}`);
}

/** At least two digits, in pairs or fours or bare, whole or not. */
function macOf(text: string): string | null {
  const whole = parseMac(text);
  if (whole) return whole;
  const isBeginning =
    /^[0-9a-f]{2}([:-][0-9a-f]{2}){0,4}([:-][0-9a-f]?)?$/i.test(text) ||
    /^[0-9a-f]{4}(\.[0-9a-f]{0,4}){1,2}$/i.test(text) ||
    /^[0-9a-f]{4,11}$/i.test(text);
  if (!isBeginning) return null;
  const digits = text.replace(/[:.-]/g, '').toLowerCase();
  return digits.match(/..?/g)!.join(':');
}

function namesOf(text: string): string[] {
  const labels = text
    .toLowerCase()
    .replace(/^[a-z]+:\/\//, '')
    .split(/[/:?#]/)[0]!
    .split('.');
  if (labels.length < 2 || labels.some((label) => !/^[\p{L}\p{N}_-]+$/u.test(label))) return [];
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'));
}
