/** Spoofed sources: random addresses of one prefix, or always the same address. */
import { type AddressBytes, type Prefix, parseAddress } from '#common/ip/index.ts';

export interface Sources {
  /** The next source's 16-bit words; the same array each time. */
  next(): Uint16Array;
}

/** A function that returns 32 random bits. */
export type Random32 = () => number;

/** 2^32 divided by the golden ratio: its multiples lie far apart. */
const scatter = 0x9e37_79b1;

/** Sources of `prefix`, or only `from`. `hostsMax` bounds how many different ones there are. */
export function createSources(
  prefix: Prefix,
  from: string | null,
  random: Random32,
  hostsMax = 0x1_0000_0000,
): Sources {
  const words = toWords(from === null ? prefix.bytes : parseAddress(from)!);
  if (from !== null) return { next: () => words };
  const bits = prefix.bytes.length * 8 - prefix.length;
  // Addresses differ in the bits after the prefix: in IPv6 these are networks, as of many real senders.
  const spread = Math.min(bits, 32);
  const isAny = hostsMax >= 2 ** spread;
  const shift = bits - spread;
  const base = prefix.bytes;
  return {
    next() {
      const value = isAny ? random() : Math.imul(1 + (random() % hostsMax), scatter);
      fillWords(words, base, value >>> (32 - spread), shift);
      // No network or gateway address: hosts end in an odd number.
      words[words.length - 1]! |= 1;
      return words;
    },
  };
}

/** Adds `value` shifted left by `shift` bits to the base address. */
function fillWords(words: Uint16Array, base: AddressBytes, value: number, shift: number): void {
  let rest = value;
  let skip = shift;
  for (let i = words.length - 1; i >= 0; i -= 1) {
    const word = (base[2 * i]! << 8) | base[2 * i + 1]!;
    if (skip >= 16) {
      words[i] = word;
      skip -= 16;
      continue;
    }
    const room = 2 ** (16 - skip);
    words[i] = word | ((rest % room) << skip);
    rest = Math.floor(rest / room);
    skip = 0;
  }
}

function toWords(bytes: AddressBytes): Uint16Array {
  return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!);
}
