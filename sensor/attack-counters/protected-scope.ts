/**
 * Which ends of a packet are protected. Filters of 8 KiB turn away almost every other address at the price of one read; they
 * never turn a protected one away.
 */
import {
  compileLocalScope,
  type LocalRanges,
  type LocalScope,
  type Packet,
  parseWords,
} from '#sensor/capture/index.ts';

const filterBits = 16;
/** Of a word's product the upper bits are its place. */
export const filterShift = 32 - filterBits;
export const filterFactor = 0x9e3779b1 | 0;

/** Addresses of a narrow scope: so many set a hundredth of the filter. */
const narrowMax = 512;

/** A bit for each hash of a word: false for most words that were not added. */
export class WordFilter {
  readonly bits = new Int32Array((1 << filterBits) / 32);

  has(word: number): boolean {
    const hash = Math.imul(word, filterFactor) >>> filterShift;
    return ((this.bits[hash >>> 5]! >>> (hash & 31)) & 1) !== 0;
  }

  add(word: number): void {
    const hash = Math.imul(word, filterFactor) >>> filterShift;
    this.bits[hash >>> 5]! |= 1 << (hash & 31);
  }

  addAll(): void {
    this.bits.fill(-1);
  }
}

export class ProtectedScope {
  /** Null: every unicast address that receives is protected, and every one that sends. */
  readonly #ranges: LocalRanges | null;
  /** True when addresses are protected that the scope does not name one by one. */
  readonly hasPrefixes: boolean;
  /** True when so few addresses are protected that almost every packet can be turned away at once. */
  readonly isNarrow: boolean;
  /** Exact addresses, and the /24 and /48 of prefixes. */
  readonly #addresses = new WordFilter();
  readonly #blocks4 = new WordFilter();
  readonly #blocks6 = new WordFilter();

  constructor(scope: LocalScope | null) {
    this.#ranges = scope && compileLocalScope(scope);
    this.hasPrefixes = scope === null || scope.prefixes.length > 0;
    this.isNarrow = scope !== null && !this.hasPrefixes && scope.addresses.length <= narrowMax;
    for (const prefix of scope ? scope.prefixes : ['0.0.0.0/0', '::/0']) this.#addBlocks(prefix);
    for (const address of scope ? scope.addresses : []) {
      const { words } = parseWords(address);
      this.#addresses.add(mixed(words[0], words[1], words[2], words[3]));
    }
  }

  /** The filters of IPv4 addresses as they are, and of their first 24 bits. */
  get addressBits(): Int32Array {
    return this.#addresses.bits;
  }

  get blockBits(): Int32Array {
    return this.#blocks4.bits;
  }

  /** False for most addresses that are not protected. */
  mayHold(version: number, w0: number, w1: number, w2: number, w3: number): boolean {
    if (this.#addresses.has(mixed(w0, w1, w2, w3))) return true;
    if (!this.hasPrefixes) return false;
    return version === 4 ? this.#blocks4.has(w3 >>> 8) : this.#blocks6.has(block6(w0, w1));
  }

  /** False for most packets without a protected end. */
  mayHoldPacket(p: Packet): boolean {
    return (
      this.mayHold(p.version, p.source0, p.source1, p.source2, p.source3) ||
      this.mayHold(p.version, p.target0, p.target1, p.target2, p.target3)
    );
  }

  /** Of two addresses of four words each, bit 0: the first may be protected; bit 1: the second may. */
  mayHoldEnds(version: number, words: Int32Array, at: number): number {
    return (this.#mayHoldAt(version, words, at) ? 1 : 0) | (this.#mayHoldAt(version, words, at + 4) ? 2 : 0);
  }

  #mayHoldAt(version: number, words: Int32Array, at: number): boolean {
    return this.mayHold(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
  }

  /** Of two addresses of four words each, bit 0: the first is protected; bit 1: the second is. */
  ends(version: number, words: Int32Array, at: number): number {
    return this.#ranges === null ? 3 : this.#ranges.sides(version, words, at);
  }

  /** True when an IPv4 address is protected. */
  hasIpv4(address: number): boolean {
    return this.#ranges === null || this.#ranges.hasIpv4(address);
  }

  /** True when every unicast address is protected. */
  get isOpen(): boolean {
    return this.#ranges === null;
  }

  #addBlocks(prefix: string): void {
    const [address, lengthText] = prefix.split('/');
    const { version, words } = parseWords(address!);
    const blockLength = version === 4 ? 24 : 48;
    const length = lengthText === undefined ? blockLength : Math.min(blockLength, Number(lengthText));
    const filter = version === 4 ? this.#blocks4 : this.#blocks6;
    const blocks = 2 ** (blockLength - length);
    if (blocks > 1 << filterBits) {
      filter.addAll();
      return;
    }
    // A prefix shorter than its blocks has zeros where they are counted.
    for (let i = 0; i < blocks; i += 1) {
      if (version === 4) filter.add((words[3] >>> 8) + i);
      else filter.add(block6(words[0], words[1] + i * 65_536));
    }
  }
}

/** All words of an address; of an IPv4 address only the last is not zero. */
function mixed(w0: number, w1: number, w2: number, w3: number): number {
  return w3 ^ Math.imul(w2, 0x27d4eb2d) ^ Math.imul(w1, 0x85ebca6b) ^ Math.imul(w0, 0xc2b2ae35);
}

/** The first 48 bits of an IPv6 address. */
function block6(w0: number, w1: number): number {
  return Math.imul(w0, 0x85ebca6b) ^ (w1 >>> 16);
}
