/**
 * Sums by key over more keys than memory should hold.
 *
 * Keys are summed in a table; when it is full, its records go to parts by their hash and the table begins anew. At the
 * end each part fits into a table again, where records of one key are added up.
 */
import { KeyedTable, mixHash } from './keyed-table.ts';
import { type PageFile, RowStore } from './row-store.ts';

const partCount = 64;
/** A part of more keys than this would be one of several hundred million. */
const partRecordsMax = 1 << 22;

export interface SummingTableOptions {
  keyWords: number;
  sumCount: number;
  /** Keys in memory. */
  recordsMax: number;
  seed: number;
  file: PageFile | null;
}

/** A row of the result: its sums first, its key behind them. */
export function keyAt(sumCount: number): number {
  return sumCount * 2;
}

export class SummingTable {
  /** Where a caller puts the key before `add`. */
  readonly key: Int32Array;
  /** After `locate`: the key was not in memory. */
  isNew = false;
  readonly #options: SummingTableOptions;
  #table: KeyedTable;
  #parts: RowStore[] | null = null;

  constructor(options: SummingTableOptions) {
    this.#options = options;
    this.#table = this.#createTable(options.file ? options.recordsMax : partRecordsMax);
    this.key = this.#table.key;
  }

  /** Sums of the table; `locate` says where those of the key begin. */
  get sums(): Float64Array {
    return this.#table.sums;
  }

  /** Where in `sums` those of the key begin; -1 when it is not in memory and `mayAdd` is false. */
  locate(mayAdd: boolean): number {
    const { count } = this.#table;
    let record = mayAdd ? this.#table.locate() : this.#table.find();
    this.isNew = this.#table.count > count;
    if (record < 0) {
      if (!mayAdd) return -1;
      this.#spill();
      record = this.#table.locate();
      this.isNew = true;
    }
    return record * this.#options.sumCount;
  }

  /** Every key once, with all its sums, as rows. The table is empty afterwards. */
  finish(residentBytes: number): RowStore {
    const { keyWords, sumCount, file } = this.#options;
    const rows = new RowStore(rowWords(keyWords, sumCount), residentBytes, file);
    if (!this.#parts) {
      this.#copyRows(this.#table, () => rows);
      this.#table.clear();
      return rows;
    }
    this.#spill();
    // One after the other leaves memory, or the pages that they were read into would stay.
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      const table = this.#createTable(partRecordsMax);
      for (let row = 0; row < part.count; row += 1) {
        part.seek(row);
        addRow(table, part, keyWords, sumCount);
      }
      this.#copyRows(table, () => rows);
    }
    return rows;
  }

  #createTable(recordsMax: number): KeyedTable {
    const { keyWords, sumCount, seed } = this.#options;
    return new KeyedTable({ keyWords, wordCount: 0, sumCount, recordsMax }, seed);
  }

  #spill(): void {
    const { keyWords, sumCount, file, seed } = this.#options;
    this.#parts ??= Array.from(
      { length: partCount },
      () => new RowStore(rowWords(keyWords, sumCount), 0, file),
    );
    const parts = this.#parts;
    this.#copyRows(this.#table, (keys, at) => {
      // Another hash than the table's, or each part would fill a corner of its table.
      let hash = ~seed;
      for (let word = 0; word < keyWords; word += 1) hash = mixHash(hash, keys[at + word]!);
      return parts[hash & (partCount - 1)]!;
    });
    this.#table.clear();
  }

  #copyRows(table: KeyedTable, chooseRows: (keys: Int32Array, at: number) => RowStore): void {
    const { keyWords, sumCount } = this.#options;
    const { keys, sums, count } = table;
    for (let record = 0; record < count; record += 1) {
      const rows = chooseRows(keys, record * keyWords);
      rows.append();
      const sum = rows.at >> 1;
      for (let i = 0; i < sumCount; i += 1) rows.sums[sum + i] = sums[record * sumCount + i]!;
      const key = rows.at + keyAt(sumCount);
      for (let i = 0; i < keyWords; i += 1) rows.words[key + i] = keys[record * keyWords + i]!;
    }
  }
}

function addRow(table: KeyedTable, { words, sums, at }: RowStore, keyWords: number, sumCount: number): void {
  const key = at + keyAt(sumCount);
  for (let i = 0; i < keyWords; i += 1) table.key[i] = words[key + i]!;
  const record = table.locate();
  if (record < 0)
    throw new RangeError(`a capture with more than ${partCount * partRecordsMax} different keys`);
  for (let i = 0; i < sumCount; i += 1) table.sums[record * sumCount + i]! += sums[(at >> 1) + i]!;
}

function rowWords(keyWords: number, sumCount: number): number {
  return sumCount * 2 + keyWords + (keyWords & 1);
}
