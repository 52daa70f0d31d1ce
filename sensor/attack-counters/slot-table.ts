/**
 * Counters of addresses or prefixes in one-second bins: the latest seconds, for each direction and kind of packet.
 *
 * A bin is set to zero when its slot first counts in a new second, so quiet slots cost nothing.
 */
import { formatWords, KeyedTable } from '#sensor/capture/index.ts';
import { kindCount } from './packet-kind.ts';

/** Layout of one bin: packets by kind, IP bytes by kind, then two more counters. */
export const Bin = {
  packets: 0,
  bytes: kindCount,
  /** TCP connections whose handshake was completed in this second. */
  opened: kindCount * 2,
  /** How many more packets there were at most in frames that were merged out of an unknown number. */
  unknown: kindCount * 2 + 1,
} as const;

/** Doubles of one bin. */
export const binLength = kindCount * 2 + 2;
const keyWords = 5;
/** Words of a slot: the last second with a packet, its detail for each direction, its hosts (of a prefix), its thresholds. */
export const SlotWord = { lastSecond: 0, detail: 1, hosts: 3, group: 4 } as const;
const slotWords = 5;

export class SlotTable {
  /** Seconds that are kept: the open one among them. */
  readonly bins: number;
  /** The slots with packets in the second of the latest packet. */
  readonly active: Int32Array;
  activeCount = 0;
  activeSecond = -1;
  readonly #directions: number;
  readonly #table: KeyedTable;

  constructor(slotsMax: number, directions: 1 | 2, bins: number, seed: number) {
    this.bins = bins;
    this.active = new Int32Array(slotsMax);
    this.#directions = directions;
    this.#table = new KeyedTable(
      {
        keyWords,
        wordCount: slotWords,
        sumCount: directions * bins * binLength,
        recordsMax: slotsMax,
      },
      seed,
    );
  }

  get count(): number {
    return this.#table.count;
  }

  /** The slot of an address of four words, or -1. */
  find(version: number, w0: number, w1: number, w2: number, w3: number): number {
    this.#setKey(version, w0, w1, w2, w3);
    return this.#table.find();
  }

  /** The slot of an address, created when it is missing; -1 when the table is full. */
  locate(version: number, w0: number, w1: number, w2: number, w3: number): number {
    this.#setKey(version, w0, w1, w2, w3);
    return this.#table.locate();
  }

  /** Adds packets to the bin of `second` and returns the position of the bin in `sums`. */
  add(
    slot: number,
    direction: number,
    second: number,
    kind: number,
    packets: number,
    bytes: number,
    unknown: number,
    opened: number,
  ): number {
    const { words, sums } = this.#table;
    if (words[slot * slotWords + SlotWord.lastSecond] !== second + 1) this.#turn(slot, second);
    const base = this.#bin(slot, direction, second);
    sums[base + kind]! += packets;
    sums[base + Bin.bytes + kind]! += bytes;
    if (unknown > 0) sums[base + Bin.unknown]! += unknown;
    if (opened > 0) sums[base + Bin.opened]! += opened;
    return base;
  }

  /** Adds a whole bin to the bin of `second`; its counters are in `from` from `at` on. */
  addAll(slot: number, direction: number, second: number, from: Float64Array, at: number): void {
    const { words, sums } = this.#table;
    if (words[slot * slotWords + SlotWord.lastSecond] !== second + 1) this.#turn(slot, second);
    const base = this.#bin(slot, direction, second);
    for (let i = 0; i < binLength; i += 1) sums[base + i]! += from[at + i]!;
  }

  /** Packets of a kind so far in the open second. */
  packetsSoFar(slot: number, direction: number, second: number, kind: number): number {
    if (this.lastSecond(slot) !== second) return 0;
    return this.#table.sums[this.#bin(slot, direction, second) + kind]!;
  }

  /** A counter of the last `add`, by the position that it returned. */
  sum(at: number): number {
    return this.#table.sums[at]!;
  }

  /** Adds the bin of a second to `into`, from `at` on. */
  addBin(slot: number, direction: number, second: number, into: Float64Array, at = 0): void {
    const last = this.lastSecond(slot);
    if (second > last || second <= last - this.bins || direction >= this.#directions) return;
    const { sums } = this.#table;
    const base = this.#bin(slot, direction, second);
    for (let i = 0; i < binLength; i += 1) into[at + i]! += sums[base + i]!;
  }

  /** The last second with a packet, -1 for none. */
  lastSecond(slot: number): number {
    return this.#table.words[slot * slotWords + SlotWord.lastSecond]! - 1;
  }

  word(slot: number, word: number): number {
    return this.#table.words[slot * slotWords + word]!;
  }

  setWord(slot: number, word: number, value: number): void {
    this.#table.words[slot * slotWords + word] = value;
  }

  /** IP version, and the words of the address. */
  version(slot: number): number {
    return this.#table.keys[slot * keyWords]!;
  }

  keyWord(slot: number, word: number): number {
    return this.#table.keys[slot * keyWords + 1 + word]!;
  }

  /** The address as text. */
  text(slot: number): string {
    const { keys } = this.#table;
    const at = slot * keyWords;
    return formatWords(keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!, keys[at + 4]!);
  }

  /** Removes every slot except these, which get new numbers in that order. */
  keepOnly(slots: ArrayLike<number>): void {
    this.activeCount = 0;
    this.#table.keepOnly(slots);
  }

  #setKey(version: number, w0: number, w1: number, w2: number, w3: number): void {
    const { key } = this.#table;
    key[0] = version;
    key[1] = w0;
    key[2] = w1;
    key[3] = w2;
    key[4] = w3;
  }

  #bin(slot: number, direction: number, second: number): number {
    return ((slot * this.#directions + direction) * this.bins + (second % this.bins)) * binLength;
  }

  /** Sets the bins since the slot's last second to zero. */
  #turn(slot: number, second: number): void {
    if (second !== this.activeSecond) {
      this.activeSecond = second;
      this.activeCount = 0;
    }
    this.active[this.activeCount] = slot;
    this.activeCount += 1;
    const { words, sums } = this.#table;
    const last = this.lastSecond(slot);
    const first = Math.max(last + 1, second - this.bins + 1);
    for (let one = first; one <= second; one += 1) {
      for (let direction = 0; direction < this.#directions; direction += 1) {
        const base = this.#bin(slot, direction, one);
        sums.fill(0, base, base + binLength);
      }
    }
    words[slot * slotWords + SlotWord.lastSecond] = second + 1;
  }
}
