/**
 * A hash table whose records are rows: sums first, then the key, in the order in which keys were added. The rows of a
 * finished table need no copy.
 *
 * The system provides memory pages when they are first written, so capacity costs nothing until it is used.
 */
import { mixHash } from '../keyed-table.ts';
import type { RowStore } from './row-store.ts';

export interface RowTableShape {
  keyWords: number;
  sumCount: number;
  /** Initial and maximum capacity in rows. */
  recordsMin: number;
  recordsMax: number;
}

/** A word of the index: the record's number plus one, and bits of its hash that avoid comparing most other rows. */
const recordMask = 0x7fffff;
const tagMask = ~recordMask;

export class RowTable {
  words: Int32Array;
  /** The same memory as doubles. */
  sums: Float64Array;
  count = 0;
  /** Even, so that sums are at even words. */
  readonly rowWords: number;
  readonly #keyAt: number;
  readonly #keyWords: number;
  readonly #recordsMax: number;
  readonly #seed: number;
  #capacity: number;
  #index: Int32Array;

  constructor({ keyWords, sumCount, recordsMin, recordsMax }: RowTableShape, seed: number) {
    if (recordsMax >= recordMask) throw new RangeError(`at most ${recordMask - 1} rows`);
    this.rowWords = sumCount * 2 + keyWords + (keyWords & 1);
    this.#keyAt = sumCount * 2;
    this.#keyWords = keyWords;
    this.#recordsMax = recordsMax;
    this.#seed = seed;
    this.#capacity = recordsMin;
    const buffer = new ArrayBuffer(recordsMin * this.rowWords * 4);
    this.words = new Int32Array(buffer);
    this.sums = new Float64Array(buffer);
    this.#index = new Int32Array(indexLength(recordsMin));
  }

  /** Position in words of the row with the key at `from` in `key`; -1 when it is missing and may not be added. */
  locate(key: Int32Array, from: number, mayAdd: boolean): number {
    const hash = this.#hash(key, from);
    const index = this.#index;
    const mask = index.length - 1;
    const { words, rowWords } = this;
    const keyWords = this.#keyWords;
    let place = hash - 1;
    for (;;) {
      place = (place + 1) & mask;
      const entry = index[place]!;
      if (entry === 0) break;
      if (((entry ^ hash) & tagMask) === 0) {
        const row = ((entry & recordMask) - 1) * rowWords;
        const at = row + this.#keyAt;
        let word = 0;
        while (word < keyWords && words[at + word] === key[from + word]) word += 1;
        if (word === keyWords) return row;
      }
    }
    return mayAdd ? this.#add(key, from, hash, place) : -1;
  }

  /** Adds the sums of the store's current row to the row of its key. */
  addRow({ words, sums, at }: RowStore): void {
    const row = this.locate(words, at + this.#keyAt, true);
    if (row < 0)
      throw new RangeError(`a capture with more than ${this.#recordsMax} different keys in a part`);
    for (let sum = 0; sum < this.#keyAt >> 1; sum += 1)
      this.sums[(row >> 1) + sum]! += sums[(at >> 1) + sum]!;
  }

  /** Removes every row. */
  clear(): void {
    this.#index.fill(0);
    this.words.fill(0, 0, this.count * this.rowWords);
    this.count = 0;
  }

  #add(key: Int32Array, from: number, hash: number, place: number): number {
    if (this.count === this.#capacity) {
      if (this.#capacity >= this.#recordsMax) return -1;
      this.#grow();
      return this.locate(key, from, true);
    }
    const row = this.count * this.rowWords;
    this.count += 1;
    this.#index[place] = this.count | (hash & tagMask);
    const at = row + this.#keyAt;
    for (let word = 0; word < this.#keyWords; word += 1) this.words[at + word] = key[from + word]!;
    return row;
  }

  #hash(key: Int32Array, from: number): number {
    let hash = this.#seed;
    // Most words of an IPv4 key are zero and are skipped; the others are mixed in with their position.
    for (let word = 0; word < this.#keyWords; word += 1) {
      const value = key[from + word]!;
      if (value !== 0) hash = mixHash((hash + word) | 0, value);
    }
    return hash;
  }

  #grow(): void {
    this.#capacity = Math.min(this.#capacity * 2, this.#recordsMax);
    const before = this.words;
    const buffer = new ArrayBuffer(this.#capacity * this.rowWords * 4);
    this.words = new Int32Array(buffer);
    this.sums = new Float64Array(buffer);
    this.words.set(before);
    const index = new Int32Array(indexLength(this.#capacity));
    const mask = index.length - 1;
    for (let record = 0; record < this.count; record += 1) {
      const hash = this.#hash(this.words, record * this.rowWords + this.#keyAt);
      let place = hash & mask;
      while (index[place] !== 0) place = (place + 1) & mask;
      index[place] = (record + 1) | (hash & tagMask);
    }
    this.#index = index;
  }
}

function indexLength(capacity: number): number {
  return 1 << Math.ceil(Math.log2(capacity * 2));
}
