/**
 * A hash table of fixed-width records in typed arrays: open addressing, keyed hash, no deletion except `clear` and
 * `keepOnly`.
 *
 * A record has a key of `keyWords` 32-bit words, and a value of `wordCount` words and `sumCount` doubles. The table
 * doubles up to `recordsMax`. `locate` returns -1 when there is no room; the caller counts that.
 */

export interface KeyedTableShape {
  keyWords: number;
  wordCount: number;
  sumCount: number;
  recordsMax: number;
}

/** Initial capacity in records. */
const recordsMin = 256;

/** Mixes one word into a running hash. */
export function mixHash(hash: number, word: number): number {
  let mixed = Math.imul(hash ^ word, 0x9e3779b1);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x85ebca77);
  return mixed ^ (mixed >>> 13);
}

export class KeyedTable {
  /** The caller sets the key here before `locate` or `find`. */
  readonly key: Int32Array;
  /** Words of values: `record * wordCount + i`. */
  words: Int32Array;
  /** Doubles of values: `record * sumCount + i`. */
  sums: Float64Array;
  /** Words of keys: `record * keyWords + i`. */
  keys: Int32Array;
  count = 0;

  readonly #shape: KeyedTableShape;
  readonly #seed: number;
  #index: Int32Array;
  #capacity: number;

  constructor(shape: KeyedTableShape, seed: number) {
    this.#shape = shape;
    this.#seed = seed;
    this.#capacity = Math.min(recordsMin, shape.recordsMax);
    this.key = new Int32Array(shape.keyWords);
    this.keys = new Int32Array(this.#capacity * shape.keyWords);
    this.words = new Int32Array(this.#capacity * shape.wordCount);
    this.sums = new Float64Array(this.#capacity * shape.sumCount);
    this.#index = new Int32Array(indexLength(this.#capacity));
  }

  /** The record of `key`, or -1. */
  find(): number {
    const record = this.#index[this.#probe()]! - 1;
    return record;
  }

  /** The record of `key`, created with zero values if it is missing; -1 when the table is full. */
  locate(): number {
    const at = this.#probe();
    const found = this.#index[at]! - 1;
    if (found >= 0) return found;
    if (this.count === this.#capacity) {
      if (this.#capacity >= this.#shape.recordsMax) return -1;
      this.#grow();
      return this.locate();
    }
    const record = this.count;
    this.count += 1;
    this.#index[at] = record + 1;
    const { keyWords, wordCount, sumCount } = this.#shape;
    for (let i = 0; i < keyWords; i += 1) this.keys[record * keyWords + i] = this.key[i]!;
    for (let i = 0; i < wordCount; i += 1) this.words[record * wordCount + i] = 0;
    for (let i = 0; i < sumCount; i += 1) this.sums[record * sumCount + i] = 0;
    return record;
  }

  /** Removes every record and releases the memory of an unusually large minute. */
  clear(): void {
    const usual = Math.min(this.#shape.recordsMax, Math.max(recordsMin, this.count * 4));
    if (this.#capacity > usual) this.#resize(1 << Math.ceil(Math.log2(usual)));
    else this.#index.fill(0);
    this.count = 0;
  }

  /** Removes every record except these, which are in ascending order and get new numbers in that order. */
  keepOnly(records: ArrayLike<number>): void {
    const { keyWords, wordCount, sumCount } = this.#shape;
    for (let record = 0; record < records.length; record += 1) {
      const from = records[record]!;
      for (let i = 0; i < keyWords; i += 1)
        this.keys[record * keyWords + i] = this.keys[from * keyWords + i]!;
      for (let i = 0; i < wordCount; i += 1)
        this.words[record * wordCount + i] = this.words[from * wordCount + i]!;
      for (let i = 0; i < sumCount; i += 1)
        this.sums[record * sumCount + i] = this.sums[from * sumCount + i]!;
    }
    this.count = records.length;
    this.reindex();
  }

  /** Rebuilds the index after keys were changed. */
  reindex(): void {
    const { keyWords } = this.#shape;
    const wanted = this.key.slice();
    this.#index.fill(0);
    for (let record = 0; record < this.count; record += 1) {
      for (let i = 0; i < keyWords; i += 1) this.key[i] = this.keys[record * keyWords + i]!;
      this.#index[this.#probe()] = record + 1;
    }
    this.key.set(wanted);
  }

  /** Index position of the key, or of the free slot for it. */
  #probe(): number {
    const { keyWords } = this.#shape;
    const { key, keys } = this;
    const index = this.#index;
    const mask = index.length - 1;
    let hash = this.#seed;
    // Most words of an IPv4 key are zero and are skipped; the others are mixed in with their position.
    for (let i = 0; i < keyWords; i += 1) if (key[i] !== 0) hash = mixHash(hash + i, key[i]!);
    let at = hash & mask;
    for (;;) {
      const record = index[at]! - 1;
      if (record < 0) return at;
      let i = 0;
      while (i < keyWords && keys[record * keyWords + i] === key[i]) i += 1;
      if (i === keyWords) return at;
      at = (at + 1) & mask;
    }
  }

  #grow(): void {
    const before = { keys: this.keys, words: this.words, sums: this.sums };
    this.#resize(Math.min(this.#capacity * 2, this.#shape.recordsMax));
    this.keys.set(before.keys);
    this.words.set(before.words);
    this.sums.set(before.sums);
    this.reindex();
  }

  #resize(capacity: number): void {
    this.#capacity = capacity;
    this.keys = new Int32Array(capacity * this.#shape.keyWords);
    this.words = new Int32Array(capacity * this.#shape.wordCount);
    this.sums = new Float64Array(capacity * this.#shape.sumCount);
    this.#index = new Int32Array(indexLength(capacity));
  }
}

function indexLength(capacity: number): number {
  return 1 << Math.ceil(Math.log2(capacity * 2));
}
