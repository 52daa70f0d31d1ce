/**
 * Sums by key, for more keys than fit into memory.
 *
 * Keys are summed in a table. When it is full, its records are divided by hash into parts, and the table starts empty.
 * At the end each part fits into a table, which adds up the records of each key.
 */
import { mixHash } from '../keyed-table.ts';
import { type PageFile, RowStore } from './row-store.ts';
import { RowTable } from './row-table.ts';

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
