/**
 * Addresses in the packet path: four 32-bit words, converted from and to canonical text (RFC 5952).
 *
 * Parsing accepts canonical text only; callers canonicalize addresses first. Text is made at export, never per packet.
 */

/** `version` is 4 or 6; an IPv4 address is in word 3. */
export interface AddressWords {
  version: number;
  words: [number, number, number, number];
}

/** Text of an address in words. */
export function formatWords(version: number, w0: number, w1: number, w2: number, w3: number): string {
  if (version === 4) return formatQuad(w3);
  if (w0 === 0 && w1 === 0 && w2 === 0xffff) return `::ffff:${formatQuad(w3)}`;
  const groups = [
    w0 >>> 16,
    w0 & 0xffff,
    w1 >>> 16,
    w1 & 0xffff,
    w2 >>> 16,
    w2 & 0xffff,
    w3 >>> 16,
    w3 & 0xffff,
  ];
  let bestStart = -1;
  let bestLength = 1;
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length += 1;
    if (length > bestLength) {
      bestStart = start;
      bestLength = length;
    }
  }
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (bestStart < 0) return hex(groups);
  return `${hex(groups.slice(0, bestStart))}::${hex(groups.slice(bestStart + bestLength))}`;
}

function formatQuad(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
}

/**
 * Words of a canonical address. Throws on any other text, because a wrong local scope would reverse the direction of
 * all traffic.
 */
export function parseWords(text: string): AddressWords {
  const words = text.includes(':') ? parseGroups(text) : parseQuad(text);
  if (!words) throw new Error(`not a canonical IP address: ${JSON.stringify(text)}`);
  return words;
}

function parseQuad(text: string): AddressWords | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return null;
  const parts = match.slice(1).map(Number);
  if (parts.some((part) => part > 255)) return null;
  return {
    version: 4,
    words: [0, 0, 0, (parts[0]! << 24) | (parts[1]! << 16) | (parts[2]! << 8) | parts[3]!],
  };
}

function parseGroups(text: string): AddressWords | null {
  const quadAt = text.includes('.') ? text.lastIndexOf(':') + 1 : -1;
  const quad = quadAt < 0 ? null : parseQuad(text.slice(quadAt));
  if (quadAt >= 0 && !quad) return null;
  const word = quad?.words[3] ?? 0;
  const plain = quad
    ? `${text.slice(0, quadAt)}${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
    : text;
  const halves = plain.split('::');
  if (halves.length > 2) return null;
  const split = (half: string) => (half === '' ? [] : half.split(':'));
  const head = split(halves[0]!);
  const tail = split(halves[1] ?? '');
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const texts = [...head, ...new Array<string>(missing).fill('0'), ...tail];
  if (!texts.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
  const groups = texts.map((group) => Number.parseInt(group, 16));
  const pair = (at: number) => (groups[at]! << 16) | groups[at + 1]!;
  return { version: 6, words: [pair(0), pair(2), pair(4), pair(6)] };
}
