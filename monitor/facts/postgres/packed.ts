/** Lists as the tables by name pack them: `inet_send` is a family, three bytes of which the last is a length, the address. */
import { randomInt } from 'node:crypto';
import { formatAddress } from '#common/ip/index.ts';

const headBytes = 4;
const countedBytes = 8;
/** Of an IPv4 address, and of a pair of them. */
const fourBytes = headBytes + 4;
const fourPairBytes = 2 * fourBytes + countedBytes;
const familyFour = 2;

const addressEnd = (packed: Buffer, at: number): number => at + headBytes + packed[at + 3]!;

const pairEnd = (packed: Buffer, at: number): number => addressEnd(packed, addressEnd(packed, at));

const isFourPair = (packed: Buffer, at: number): boolean =>
  packed[at] === familyFour && packed[at + fourBytes] === familyFour;

/** How many different addresses these hold. */
export function countAddresses(packed: Buffer): number {
  const four = new Set<number>();
  const six = new Set<string>();
  for (let at = 0; at < packed.length; ) {
    const end = addressEnd(packed, at);
    if (packed[at] === familyFour) four.add(packed.readUInt32BE(at + headBytes));
    else six.add(packed.toString('latin1', at, end));
    at = end;
  }
  return four.size + six.size;
}

/** The addresses, each once. */
export function listAddresses(packed: Buffer): string[] {
  const found = new Set<string>();
  for (let at = 0; at < packed.length; at = addressEnd(packed, at))
    found.add(formatAddress(packed.subarray(at + headBytes, addressEnd(packed, at))));
  return [...found];
}

export interface TopPair {
  client: string;
  server: string;
  pairs: number;
}

/** The pair with the most bytes, of equal ones that with the lowest addresses, and how many there are; null of none. */
export function findTopPair(packed: Buffer): TopPair | null {
  const four = sumFourPairs(packed);
  const six = sumOtherPairs(packed);
  const top = pickTop(packed, four, six);
  if (top.at < 0) return null;
  const middle = addressEnd(packed, top.at);
  const address = (from: number, to: number) => formatAddress(packed.subarray(from + headBytes, to));
  const client = address(top.at, middle);
  return { client, server: address(middle, pairEnd(packed, top.at)), pairs: four.pairs + six.pairs };
}

/** Packed addresses compare as addresses do, family first, then byte by byte. */
function pickTop(packed: Buffer, a: Top, b: Top): Top {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  if (!isEqual(a.bytes, b.bytes)) return isMore(a.bytes, b.bytes) ? a : b;
  const key = (top: Top) => packed.subarray(top.at, pairEnd(packed, top.at));
  return Buffer.compare(key(a), key(b)) < 0 ? a : b;
}

/** Where a top pair stands, -1 for nowhere; its bytes are NaN where only names are known. */
interface Top {
  at: number;
  bytes: number;
  pairs: number;
}

const isMore = (a: number, b: number) => a > b || (Number.isNaN(b) && !Number.isNaN(a));
const isEqual = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));
const add = (sum: number, bytes: number) =>
  Number.isNaN(sum) ? bytes : Number.isNaN(bytes) ? sum : sum + bytes;

/** Seeded, so that an attacker can not choose addresses that collide. */
const [clientFactor, serverFactor] = [randomInt(2 ** 31) * 2 + 1, randomInt(2 ** 31) * 2 + 1];

/**
 * Sums in a table of open addresses: a day of a large site has half a million entries, and a `Map` of strings takes
 * longer for them than the database for everything else.
 */
function sumFourPairs(packed: Buffer): Top {
  const bits = Math.max(4, Math.ceil(Math.log2(packed.length / fourPairBytes + 1)) + 1);
  const mask = 2 ** bits - 1;
  const clients = new Uint32Array(mask + 1);
  const servers = new Uint32Array(mask + 1);
  const sums = new Float64Array(mask + 1);
  // Where the pair stands, counted from one.
  const places = new Uint32Array(mask + 1);
  let pairs = 0;
  for (let at = 0; at < packed.length; ) {
    if (!isFourPair(packed, at)) {
      at = pairEnd(packed, at) + countedBytes;
      continue;
    }
    const client = packed.readUInt32BE(at + headBytes);
    const server = packed.readUInt32BE(at + fourBytes + headBytes);
    const bytes = packed.readDoubleBE(at + 2 * fourBytes);
    const hash = Math.imul(client, clientFactor) ^ Math.imul(server, serverFactor);
    let slot = (hash ^ (hash >>> 15)) & mask;
    while (places[slot] !== 0 && (clients[slot] !== client || servers[slot] !== server))
      slot = (slot + 1) & mask;
    if (places[slot] === 0) {
      pairs += 1;
      places[slot] = at + 1;
      clients[slot] = client;
      servers[slot] = server;
      sums[slot] = bytes;
    } else sums[slot] = add(sums[slot]!, bytes);
    at += fourPairBytes;
  }
  let top = -1;
  for (let slot = 0; slot <= mask; slot += 1) {
    if (places[slot] === 0) continue;
    const isFirst = (other: number) =>
      clients[slot]! < clients[other]! ||
      (clients[slot] === clients[other] && servers[slot]! < servers[other]!);
    if (top < 0 || isMore(sums[slot]!, sums[top]!) || (isEqual(sums[slot]!, sums[top]!) && isFirst(top)))
      top = slot;
  }
  return top < 0 ? { at: -1, bytes: Number.NaN, pairs } : { at: places[top]! - 1, bytes: sums[top]!, pairs };
}

/** The same for all others. */
function sumOtherPairs(packed: Buffer): Top {
  const sums = new Map<string, { at: number; bytes: number }>();
  for (let at = 0; at < packed.length; ) {
    const end = pairEnd(packed, at);
    if (!isFourPair(packed, at)) {
      const key = packed.toString('latin1', at, end);
      const bytes = packed.readDoubleBE(end);
      const known = sums.get(key);
      if (known) known.bytes = add(known.bytes, bytes);
      else sums.set(key, { at, bytes });
    }
    at = end + countedBytes;
  }
  let top: [string, { at: number; bytes: number }] | null = null;
  for (const entry of sums) {
    const [key, { bytes }] = entry;
    if (!top || isMore(bytes, top[1].bytes) || (isEqual(bytes, top[1].bytes) && key < top[0])) top = entry;
  }
  return top ? { ...top[1], pairs: sums.size } : { at: -1, bytes: Number.NaN, pairs: 0 };
}
