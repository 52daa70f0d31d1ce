/**
 * Sums by key, for more keys than fit into memory.
 *
 * Keys are summed in a table. When it is full, its records are divided by hash into parts, and the table starts empty.
 * At the end each part fits into a table, which adds up the records of each key.
 */
import { mixHash } from '../keyed-table.ts';
import { type PageFile, RowStore } from './row-store.ts';

const partCount = 64;
/** A part exceeds this only with several hundred million keys. */
const partRecordsMax = 1 << 22;
const partRecordsMin = 256;

export interface SummingTableOptions {
  keyWords: number;
  sumCount: number;
  /** Capacity in memory, in keys. */
  recordsMax: number;
  /** Initial capacity; memory is used when keys are added. */
  recordsMin?: number;
  seed: number;
  file: PageFile | null;
}

/** Position of the key in a row of the result, after its sums. */
export function keyAt(sumCount: number): number {
  return sumCount * 2;
}

export class SummingTable {
  /** The caller sets the key here before `add`. */
  readonly key: Int32Array;
  /** After `locate`: the key was not in memory. */
  isNew = false;
  readonly #options: SummingTableOptions;
  readonly #table: RowTable;
  #parts: RowStore[] | null = null;

  constructor(options: SummingTableOptions) {
    this.#options = options;
    this.key = new Int32Array(options.keyWords);
    const recordsMin = Math.min(options.recordsMin ?? partRecordsMin, options.recordsMax);
    this.#table = this.#createTable(recordsMin, options.file ? options.recordsMax : partRecordsMax);
  }

  /** Sums of the table; `locate` returns the position of a key's sums. */
  get sums(): Float64Array {
    return this.#table.sums;
  }

  /** Position of the key's sums in `sums`; -1 when it is not in memory and `mayAdd` is false. */
  locate(mayAdd: boolean): number {
    const table = this.#table;
    const { count } = table;
    let at = table.locate(this.key, 0, mayAdd);
    this.isNew = table.count > count;
    if (at < 0) {
      if (!mayAdd) return -1;
      this.#spill();
      at = table.locate(this.key, 0, true);
      this.isNew = true;
    }
    return at >> 1;
  }

  /** Every key once, with all its sums. The rows use the table's memory. Call once. */
  finish(residentBytes: number): RowStore {
    const { file } = this.#options;
    const table = this.#table;
    const { rowWords } = table;
    if (!this.#parts) return RowStore.of(rowWords, table);
    const rows = new RowStore(rowWords, residentBytes, file);
    this.#spill();
    // Remove each part before the next, so that its pages can be freed.
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      const whole = this.#createTable(partRecordsMin, partRecordsMax);
      for (let row = 0; row < part.count; row += 1) {
        part.seek(row);
        whole.addRow(part);
      }
      for (let row = 0; row < whole.count; row += 1) appendRow(rows, whole.words, row * rowWords, rowWords);
    }
    return rows;
  }

  #createTable(recordsMin: number, recordsMax: number): RowTable {
    const { keyWords, sumCount, seed } = this.#options;
    return new RowTable({ keyWords, sumCount, recordsMin, recordsMax }, seed);
  }

  #spill(): void {
    const { keyWords, sumCount, file, seed } = this.#options;
    const table = this.#table;
    const { words, rowWords } = table;
    this.#parts ??= Array.from({ length: partCount }, () => new RowStore(rowWords, 0, file));
    const parts = this.#parts;
    for (let at = 0; at < table.count * rowWords; at += rowWords) {
      const key = at + keyAt(sumCount);
      // A different hash than the table's; otherwise each part would use only a corner of its table.
      let hash = ~seed;
      for (let word = 0; word < keyWords; word += 1) hash = mixHash(hash, words[key + word]!);
      appendRow(parts[hash & (partCount - 1)]!, words, at, rowWords);
    }
    table.clear();
  }
}

function appendRow(rows: RowStore, words: Int32Array, at: number, rowWords: number): void {
  rows.append();
  for (let word = 0; word < rowWords; word += 1) rows.words[rows.at + word] = words[at + word]!;
}

// A hash table whose records are rows: sums first, then the key, in the order in which keys were added. The rows of a
// finished table need no copy.
//
// The system provides memory pages when they are first written, so capacity costs nothing until it is used.

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

class RowTable {
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
