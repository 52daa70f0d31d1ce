/**
 * Decides which addresses are local by binary search in sorted, merged ranges, so that each new flow of a flood costs
 * few comparisons.
 */
import { parseWords } from './address-words.ts';
import type { LocalScope } from './capture.ts';

/** A compiled scope. */
export type LocalRanges = ReturnType<typeof compileLocalScope>;

interface Range {
  version: number;
  first: bigint;
  last: bigint;
}

/** Compiles a scope. Throws on text that is not a canonical prefix or address. */
export function compileLocalScope(scope: LocalScope) {
  const ranges = [...scope.prefixes, ...scope.addresses].map(parseRange);
  const ipv4 = mergeRanges(ranges.filter((range) => range.version === 4));
  const ipv6 = mergeRanges(ranges.filter((range) => range.version === 6));
  const bounds4 = new Float64Array(ipv4.flatMap((range) => [Number(range.first), Number(range.last)]));
  const bounds6 = new Uint32Array(ipv6.flatMap((range) => [...toWords(range.first), ...toWords(range.last)]));
  const touched4 = firstBytes(ipv4);
  const isLocal4 = (address: number) => touched4[address >>> 24] === 1 && isInside4(bounds4, address);
  return {
    /** The same for one IPv4 address. */
    hasIpv4: (address: number) => isLocal4(address >>> 0),
    /**
     * For two addresses of four words each, from `at` on: bit 0 is set when the first is local, bit 1 when the second is.
     */
    sides(version: number, words: Int32Array, at: number): number {
      if (version === 4) {
        return (isLocal4(words[at + 3]! >>> 0) ? 1 : 0) | (isLocal4(words[at + 7]! >>> 0) ? 2 : 0);
      }
      return (isLocal6(bounds6, words, at) ? 1 : 0) | (isLocal6(bounds6, words, at + 4) ? 2 : 0);
    },
  };
}

function isLocal6(bounds: Uint32Array, words: Int32Array, at: number): boolean {
  return isInside6(
    bounds,
    words[at]! >>> 0,
    words[at + 1]! >>> 0,
    words[at + 2]! >>> 0,
    words[at + 3]! >>> 0,
  );
}

/**
 * For each value of an address's first byte, 1 when a range contains such addresses. Most remote addresses need no
 * search.
 */
function firstBytes(ranges: readonly Range[]): Uint8Array {
  const touched = new Uint8Array(256);
  for (const { first, last } of ranges) touched.fill(1, Number(first >> 24n), Number(last >> 24n) + 1);
  return touched;
}

function parseRange(text: string): Range {
  const [addressText, lengthText] = text.split('/');
  const { version, words } = parseWords(addressText!);
  const bits = version === 4 ? 32 : 128;
  const length = lengthText === undefined ? bits : Number(lengthText);
  if (!Number.isInteger(length) || length < 0 || length > bits || lengthText === '') {
    throw new Error(`not an IP prefix: ${JSON.stringify(text)}`);
  }
  const value = words.reduce((sum, word) => (sum << 32n) | BigInt(word >>> 0), 0n);
  const hostBits = BigInt(bits - length);
  const first = (value >> hostBits) << hostBits;
  return { version, first, last: first | ((1n << hostBits) - 1n) };
}

function mergeRanges(ranges: Range[]): Range[] {
  const merged: Range[] = [];
  for (const range of ranges.sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const previous = merged.at(-1);
    if (previous && range.first <= previous.last + 1n) {
      if (range.last > previous.last) previous.last = range.last;
    } else merged.push({ ...range });
  }
  return merged;
}

function toWords(value: bigint): number[] {
  return [96n, 64n, 32n, 0n].map((shift) => Number((value >> shift) & 0xffffffffn));
}

function isInside4(bounds: Float64Array, address: number): boolean {
  let low = 0;
  let high = bounds.length >> 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle * 2 + 1]! < address) low = middle + 1;
    else high = middle;
  }
  return low < bounds.length >> 1 && bounds[low * 2]! <= address;
}

function isInside6(bounds: Uint32Array, w0: number, w1: number, w2: number, w3: number): boolean {
  let low = 0;
  let high = bounds.length >> 3;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(bounds, middle * 8 + 4, w0, w1, w2, w3)) low = middle + 1;
    else high = middle;
  }
  return low < bounds.length >> 3 && !isAbove(bounds, low * 8, w0, w1, w2, w3);
}

function isBelow(bounds: Uint32Array, at: number, w0: number, w1: number, w2: number, w3: number): boolean {
  if (bounds[at] !== w0) return bounds[at]! < w0;
  if (bounds[at + 1] !== w1) return bounds[at + 1]! < w1;
  if (bounds[at + 2] !== w2) return bounds[at + 2]! < w2;
  return bounds[at + 3]! < w3;
}

function isAbove(bounds: Uint32Array, at: number, w0: number, w1: number, w2: number, w3: number): boolean {
  if (bounds[at] !== w0) return bounds[at]! > w0;
  if (bounds[at + 1] !== w1) return bounds[at + 1]! > w1;
  if (bounds[at + 2] !== w2) return bounds[at + 2]! > w2;
  return bounds[at + 3]! > w3;
}
