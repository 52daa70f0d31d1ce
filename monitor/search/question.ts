/** Parses search text: an address in any notation, a MAC, a number, the beginnings of words. */
import { type AddressBytes, formatAddress, parseAddress, parsePrefix } from '#common/ip/index.ts';
import { parseMac } from '#monitor/devices/index.ts';

/** Longer texts are truncated; no name is longer. */
export const textMax = 100;
/** Further words are ignored. */
const wordsMax = 6;

export interface Question {
  /** The text without surrounding spaces. */
  text: string;
  /** Canonical address, if it is one. */
  address: string | null;
  /** First and last address of a prefix or of an address's beginning. */
  range: { first: string; last: string } | null;
  /** Beginning of a MAC in the stored form, or the whole MAC. */
  mac: string | null;
  /** A number, for ids. */
  id: number | null;
  /** Lower-case beginnings of words; all must match. */
  words: string[];
  /** Parent domains of the text: `www.example.com` also searches `example.com`. */
  names: string[];
}

/** Null for an empty question. */
export function parseQuestion(typed: string): Question | null {
  // Characters that PostgreSQL can not store become spaces.
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
  // `2001:db8::` is a valid address too, but here it means a beginning.
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

/** Also with brackets, a port, a zone or a full prefix length, as copied from logs; a mapped address is IPv4. */
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

/** `192`, `192.0` and `192.0.2.` match all addresses that begin so; a single digit is more likely a number. */
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

/** At least two digits, in pairs, in groups of four or without separators, complete or not. */
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
