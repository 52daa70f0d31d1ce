/**
 * Saves what is intact in a damaged spool into a new file, and says exactly which minutes are lost.
 *
 * Uploads keep their identity: one of them may already lie at the monitor, and under a new number it would count
 * twice. The new file's own numbers start at 1 under a new UUID.
 */

import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { addRange, type MinuteRange, subtractRanges } from './minute-ranges.ts';
import type { QueueDeps } from './queue.ts';
import { nextSpoolFile, readStateCopy, type SpoolFile, takeOver } from './spool-file.ts';
import { fromStored, type SpoolState, spoolFormat } from './spool-state.ts';
import { openSpoolStore, type UploadRow } from './store.ts';
import { coversOf, gapRow, payloadIsIntact, renumberedRow } from './upload-row.ts';

/** A receipt for minutes that lie further ahead is a clock's that was wrong: it says nothing about what was delivered. */
const wrongFromSeconds = 86_400;

type SalvageDeps = Omit<QueueDeps, 'room' | 'reporter'> & { file: SpoolFile };

/** Builds the next spool file out of a damaged one and puts it in place. The damaged one must be closed. */
export function salvage(deps: SalvageDeps) {
  const { state, rows } = readWhatIsLeft(deps);
  const present = rows.reduce<MinuteRange[]>((ranges, row) => {
    const gaps = coversOf(row) ?? [];
    return gaps.reduce<MinuteRange[]>((all, gap) => addRange(all, gap.fromMinute, gap.toMinute), ranges);
  }, []);
  const covered = state?.covered ?? coveredWithoutState(present, deps);
  const through = Math.min(throughOf(state), deps.clock.nowMs() / 1000 + wrongFromSeconds);
  const lost = subtractRanges(covered, present, through).map(
    ([fromMinute, toMinute]): TelemetryGap => ({
      fromMinute,
      toMinute,
      capture: '',
      reason: 'spool_damaged',
    }),
  );
  const fresh: SpoolState = {
    format: spoolFormat,
    spoolId: randomUUID(),
    nextSequence: lost.length > 0 ? 2 : 1,
    covered,
    lastReceipt: state?.lastReceipt ?? null,
    ...(state?.delivered ? { delivered: state.delivered } : {}),
    ...(state?.lastStampedBy ? { lastStampedBy: state.lastStampedBy } : {}),
    ...(state?.lastCommit ? { lastCommit: state.lastCommit } : {}),
  };
  const next = nextSpoolFile(deps.directory, deps.file.generation);
  const store = openSpoolStore(next.building, deps.bytesMax);
  try {
    store.create(fresh);
    store.transaction(() => {
      if (lost.length > 0) {
        const identity = { position: 1, spoolId: fresh.spoolId, sequence: 1, madeAtMs: deps.clock.nowMs() };
        store.insertUpload(gapRow(deps, identity, lost));
      }
      for (const [i, row] of rows.entries()) store.insertUpload({ ...row, position: i + 2 });
    });
    store.truncateWal();
  } finally {
    store.close();
  }
  takeOver(deps.directory, deps.file.generation, next);
  return { intactUploads: rows.length, lost };
}

/**
 * The newest state and all rows that wait. Records that were deleted may show up again in freed pages: rows up to the
 * last receipt are left out, and any other is a repetition to the monitor, because its identity is the same.
 */
function readWhatIsLeft(deps: SalvageDeps) {
  const { directory } = deps;
  let state: SpoolState | null = null;
  const candidates: UploadRow[] = [];
  for (const { rowid, values } of readPageRecords(deps.file.path)) {
    if (values.length === 3) {
      const found = fromStored({ body: values[1], sha256: values[2] });
      if (found && isNewer(found, state)) state = found;
    } else if (values.length === 9) {
      const [, spoolId, sequence, madeAtMs, kind, covers, coversSha256, payload, sha256] = values;
      const row = {
        spoolId: asText(spoolId),
        sequence,
        madeAtMs,
        kind: asText(kind),
        covers: asText(covers),
        coversSha256,
        payload,
        sha256,
        position: rowid,
      };
      const intact = intactRow(deps, row as UploadRow);
      if (intact) candidates.push(intact);
    }
  }
  // Readable data of the file is newer than the copy beside it.
  state ??= fromStored(readStateCopy(directory));
  // A receipt of years to come would take everything for delivered; then what may be a repetition is sent again.
  const told = throughOf(state);
  const through = told > deps.clock.nowMs() / 1000 + wrongFromSeconds ? Number.NEGATIVE_INFINITY : told;
  const distinct = new Map<string, UploadRow>();
  for (const row of candidates) {
    const waits = row.kind !== 'minutes' || (coversOf(row) ?? []).some((gap) => gap.toMinute > through);
    if (waits) distinct.set(`${row.spoolId} ${row.sequence}`, row);
  }
  return { state, rows: [...distinct.values()].sort((a, b) => a.position - b.position) };
}

/** One bit in a record's header tells text from bytes of the same length; the digests fit both, the new file takes text. */
function asText(value: RecordValue | undefined): RecordValue | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : value;
}

/** The last minute that was delivered. */
function throughOf(state: SpoolState | null): number {
  return state?.lastReceipt?.throughMinute ?? Number.NEGATIVE_INFINITY;
}

function isNewer(found: SpoolState, known: SpoolState | null): boolean {
  if (!known) return true;
  const receiptAt = (state: SpoolState) => state.lastReceipt?.atMs ?? 0;
  return (
    found.nextSequence > known.nextSequence ||
    (found.nextSequence === known.nextSequence && receiptAt(found) > receiptAt(known))
  );
}

/** The row, when its identity and payload are what was stored; everything else in it follows from those. */
function intactRow(deps: SalvageDeps, row: UploadRow): UploadRow | null {
  if (!payloadIsIntact(row) || typeof row.madeAtMs !== 'number') return null;
  return coversOf(row) ? row : renumberedRow(deps, row, row);
}

/** Nothing tells which minutes had been collected: all since the first that is known, or since the file last changed. */
function coveredWithoutState(present: readonly MinuteRange[], deps: SalvageDeps): MinuteRange[] {
  const thisMinute = Math.floor(deps.clock.nowMs() / 60_000) * 60;
  const changed = Math.floor(statSync(deps.file.path).mtimeMs / 60_000) * 60;
  const from = Math.min(present[0]?.[0] ?? changed, changed);
  return from <= thisMinute - 60 ? addRange(present, from, thisMinute - 60) : [...present];
}

// Records out of a SQLite file that SQLite itself refuses to read.
//
// Every page that looks like a leaf of a table is read, independent of references to it and of its own header, so
// damage to headers, to inner pages or to the list of tables costs nothing. What comes out is only a candidate: the caller checks digests. Pages
// that were freed may still show records that were deleted.

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

type RecordValue = string | number | Uint8Array | null;

export interface PageRecord {
  rowid: number;
  values: RecordValue[];
}

/** Every record that can be read in the file and its log. */
function readPageRecords(path: string): PageRecord[] {
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
