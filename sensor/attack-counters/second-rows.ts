/**
 * The counters of one second as numbers for another thread: a row for each slot with packets, without the counters that are
 * zero. Most addresses have two or three kinds of packets, so most rows are short.
 *
 * A row: version, four words, the bits of each direction's counters that follow, the counters. A bit stands for packets and bytes
 * of a kind, which follow one another; the last three bits for the counters after the kinds.
 */
import { kindCount } from './packet-kind.ts';
import { Bin, binLength, countersOf, kindsOf, RowBit, type SlotTable } from './slot-table.ts';

const rowHead = 7;

/** Numbers of a row of an address with a few kinds in each direction; rows of more make room. */
const rowUsual = rowHead + 12;
const rowMax = rowHead + 2 * binLength;
/** Rows of so many addresses are written into room that is used again: making it took longer than writing them. */
const usedAgainRows = 1024;
const usedAgain = new Float64Array(usedAgainRows * rowUsual + rowMax);

/** The rows of a table's second, which is the open one. */
export function writeRows(table: SlotTable, directions: 1 | 2, second: number): Float64Array {
  const active = table.activeSecond === second ? table.activeCount : 0;
  let rows = active <= usedAgainRows ? usedAgain : new Float64Array(active * rowUsual + rowMax);
  let at = 0;
  for (let i = 0; i < active; i += 1) {
    if (at + rowMax > rows.length) rows = longer(rows);
    const slot = table.active[i]!;
    rows[at] = table.version(slot);
    for (let word = 0; word < 4; word += 1) rows[at + 1 + word] = table.keyWord(slot, word);
    const bin = table.binOf(slot, 0, second);
    const head = at;
    at = writeBin(table, bin, rows, head + 5, head + rowHead);
    if (directions === 2) at = writeBin(table, bin + binLength, rows, head + 6, at);
  }
  return rows.slice(0, at);
}

/** Writes the counters of a bin from `first` on, and their bits. Returns the position after them. */
function writeBin(table: SlotTable, bin: number, rows: Float64Array, bitsAt: number, first: number): number {
  const { counters } = table;
  const { low, isLow } = counters;
  let bits = 0;
  let at = first;
  for (let kind = 0; kind < kindCount; kind += 1) {
    const place = bin + kind * 2;
    if (low[place]! === 0) continue;
    bits |= 1 << kind;
    rows[at] = isLow ? low[place]! : counters.get(place);
    rows[at + 1] = isLow ? low[place + 1]! : counters.get(place + 1);
    at += 2;
  }
  if (low[bin + Bin.opened]! > 0) {
    bits |= RowBit.opened;
    rows[at++] = counters.get(bin + Bin.opened);
  }
  if (low[bin + Bin.unknown]! > 0) {
    bits |= RowBit.unknown;
    rows[at++] = counters.get(bin + Bin.unknown);
  }
  if (low[bin + Bin.used]! > 0) {
    bits |= RowBit.used;
    rows[at++] = counters.get(bin + Bin.used);
  }
  rows[bitsAt] = bits;
  return at;
}

function longer(rows: Float64Array): Float64Array<ArrayBuffer> {
  const more = new Float64Array(rows.length * 2);
  more.set(rows);
  return more;
}

/** One row that is read: the object is used again for the next. */
export interface ReadRow {
  version: number;
  w0: number;
  w1: number;
  w2: number;
  w3: number;
  /** The bits of both directions, and where their counters begin. */
  bits: number;
  at: number;
  otherBits: number;
  otherAt: number;
}

/** Calls `use` with each row. */
export function readRows(rows: Float64Array, use: (row: ReadRow) => void): void {
  const row: ReadRow = {
    version: 0,
    ...{ w0: 0, w1: 0, w2: 0, w3: 0 },
    ...{ bits: 0, at: 0, otherBits: 0, otherAt: 0 },
  };
  for (let at = 0; at < rows.length; ) {
    row.version = rows[at]! | 0;
    row.w0 = rows[at + 1]! | 0;
    row.w1 = rows[at + 2]! | 0;
    row.w2 = rows[at + 3]! | 0;
    row.w3 = rows[at + 4]! | 0;
    row.bits = rows[at + 5]! | 0;
    row.otherBits = rows[at + 6]! | 0;
    row.at = at + rowHead;
    row.otherAt = row.at + countersOf(row.bits);
    at = row.otherAt + countersOf(row.otherBits);
    use(row);
  }
}

/** The kinds of one direction of a row, in the layout of `Bin`. */
export function countsOf(rows: Float64Array, bits: number, first: number): Float64Array {
  const counts = new Float64Array(binLength);
  for (let kind = 0, at = first; kind < kindCount; kind += 1) {
    if (((bits >> kind) & 1) === 0) continue;
    counts[kind] = rows[at]!;
    counts[Bin.bytes + kind] = rows[at + 1]!;
    at += 2;
  }
  return counts;
}

/** All packets of one direction of a row. */
export function packetsOf(rows: Float64Array, bits: number, at: number): number {
  let packets = 0;
  for (let kind = 0; kind < kindsOf(bits); kind += 1) packets += rows[at + kind * 2]!;
  return packets;
}
