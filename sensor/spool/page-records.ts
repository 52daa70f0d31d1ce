/**
 * Records out of a SQLite file that SQLite itself refuses to read.
 *
 * Every page that looks like a leaf of a table is read, independent of references to it and of its own header, so
 * damage to headers, to inner pages or to the list of tables costs nothing. What comes out is only a candidate: the caller checks digests. Pages
 * that were freed may still show records that were deleted.
 */
import { existsSync, readFileSync } from 'node:fs';

const pageBytes = 4096;
const leafOfTable = 0x0d;
/** Payload of a cell that is kept on the leaf itself: SQLite's formula for pages of this size. */
const localMax = pageBytes - 35;
const localMin = Math.floor(((pageBytes - 12) * 32) / 255) - 23;
const overflowBytes = pageBytes - 4;
/** No record of the spool is longer. */
const recordBytesMax = 32 * 1024 * 1024;
const walHeaderBytes = 32;
const walFrameHeaderBytes = 24;

export type RecordValue = string | number | Uint8Array | null;

export interface PageRecord {
  rowid: number;
  values: RecordValue[];
}

/** Every record that can be read in the file and its log. */
export function readPageRecords(path: string): PageRecord[] {
  const pages = readPages(path);
  const records: PageRecord[] = [];
  for (const [number, page] of pages) {
    const start = number === 1 ? 100 : 0;
    if (looksLikeLeaf(page[start]!)) records.push(...readLeaf(pages, page, start));
  }
  return records;
}

/** The type of a leaf, or one bit from it. */
function looksLikeLeaf(type: number): boolean {
  const difference = type ^ leafOfTable;
  return (difference & (difference - 1)) === 0;
}

/** Follows the list of cells up to the first cell, and ignores the stated number of cells. */
function readLeaf(pages: ReadonlyMap<number, Buffer>, page: Buffer, start: number): PageRecord[] {
  const records: PageRecord[] = [];
  let firstCell = pageBytes;
  for (let at = start + 8; at + 2 <= firstCell; at += 2) {
    const offset = page.readUInt16BE(at);
    const record = readCell(pages, page, offset);
    if (!record) continue;
    firstCell = Math.min(firstCell, offset);
    records.push(record);
  }
  return records;
}

/** Pages by number, those of committed transactions in the log over those of the file. */
function readPages(path: string): Map<number, Buffer> {
  const pages = new Map<number, Buffer>();
  const file = readFileSync(path);
  for (let at = 0; at + pageBytes <= file.length; at += pageBytes) {
    pages.set(at / pageBytes + 1, file.subarray(at, at + pageBytes));
  }
  if (!existsSync(`${path}-wal`)) return pages;
  const log = readFileSync(`${path}-wal`);
  const uncommitted = new Map<number, Buffer>();
  for (let at = walHeaderBytes; at + walFrameHeaderBytes + pageBytes <= log.length; ) {
    // Frames of an earlier round of the log carry other salts than its header.
    if (log.compare(log, 16, 24, at + 8, at + 16) !== 0) break;
    const page = log.subarray(at + walFrameHeaderBytes, at + walFrameHeaderBytes + pageBytes);
    uncommitted.set(log.readUInt32BE(at), page);
    if (log.readUInt32BE(at + 4) !== 0) {
      for (const [number, committed] of uncommitted) pages.set(number, committed);
      uncommitted.clear();
    }
    at += walFrameHeaderBytes + pageBytes;
  }
  return pages;
}

function readCell(pages: ReadonlyMap<number, Buffer>, page: Buffer, offset: number): PageRecord | null {
  if (offset < 8 || offset >= pageBytes) return null;
  const length = readVarint(page, offset);
  const rowid = readVarint(page, length.next);
  if (length.value > recordBytesMax) return null;
  const wanted = localMin + ((length.value - localMin) % overflowBytes);
  const local = length.value <= localMax ? length.value : wanted <= localMax ? wanted : localMin;
  const end = rowid.next + local;
  if (end > pageBytes) return null;
  const pieces = [page.subarray(rowid.next, end)];
  let left = length.value - local;
  let next = left > 0 && end + 4 <= pageBytes ? page.readUInt32BE(end) : 0;
  while (left > 0) {
    const overflow = pages.get(next);
    if (!overflow) return null;
    pieces.push(overflow.subarray(4, 4 + Math.min(left, overflowBytes)));
    left -= overflowBytes;
    next = overflow.readUInt32BE(0);
  }
  const values = readRecord(Buffer.concat(pieces));
  return values ? { rowid: rowid.value, values } : null;
}

function readRecord(bytes: Buffer): RecordValue[] | null {
  const header = readVarint(bytes, 0);
  if (header.value > bytes.length) return null;
  const values: RecordValue[] = [];
  let at = header.value;
  for (let type = header.next; type < header.value; ) {
    const serial = readVarint(bytes, type);
    type = serial.next;
    const length = lengthOf(serial.value);
    if (at + length > bytes.length) return null;
    values.push(valueFrom(serial.value, bytes.subarray(at, at + length)));
    at += length;
  }
  return values;
}

const integerLengths = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];

function lengthOf(serial: number): number {
  return serial < 12 ? (integerLengths[serial] ?? 0) : Math.floor((serial - 12) / 2);
}

function valueFrom(serial: number, bytes: Buffer): RecordValue {
  if (serial >= 12) return serial % 2 === 0 ? Uint8Array.from(bytes) : bytes.toString('utf8');
  if (serial === 0 || serial === 7 || serial > 9) return null;
  if (serial >= 8) return serial - 8;
  return serial === 6 ? Number(bytes.readBigInt64BE(0)) : bytes.readIntBE(0, bytes.length);
}

/** A SQLite varint: up to eight groups of seven bits, then one of eight. Beyond the end it reads zeros. */
function readVarint(bytes: Buffer, offset: number): { value: number; next: number } {
  let value = 0;
  for (let i = 0; i < 9; i += 1) {
    const byte = bytes[offset + i] ?? 0;
    if (i === 8) return { value: value * 256 + byte, next: offset + 9 };
    value = value * 128 + (byte & 0x7f);
    if ((byte & 0x80) === 0) return { value, next: offset + i + 1 };
  }
  return { value, next: offset + 9 };
}
