/**
 * The counters of one second as numbers for another thread: a row for each slot with packets, without the counters that are
 * zero. Most addresses have two or three kinds of packets, so most rows are short.
 *
 * A row: version, four words, the bits of each direction's counters that follow (`SlotTable.bitsOf`), the counters.
 */
import { countersOf, kindsOf, type SlotTable } from './slot-table.ts';

const rowHead = 7;

/** The rows of a table's second. */
export function writeRows(table: SlotTable, directions: 1 | 2, second: number): Float64Array {
  const active = table.activeSecond === second ? table.activeCount : 0;
  let length = active * rowHead;
  const bits = new Int32Array(active * 2);
  for (let i = 0; i < active; i += 1) {
    for (let direction = 0; direction < directions; direction += 1) {
      const ofSlot = table.bitsOf(table.active[i]!, direction);
      bits[i * 2 + direction] = ofSlot;
      length += countersOf(ofSlot);
    }
  }
  const rows = new Float64Array(length);
  let at = 0;
  for (let i = 0; i < active; i += 1) {
    const slot = table.active[i]!;
    rows[at] = table.version(slot);
    for (let word = 0; word < 4; word += 1) rows[at + 1 + word] = table.keyWord(slot, word);
    const first = bits[i * 2]!;
    const other = bits[i * 2 + 1]!;
    rows[at + 5] = first;
    rows[at + 6] = other;
    at = table.writeCounters(slot, 0, first, rows, at + rowHead);
    if (other !== 0) at = table.writeCounters(slot, 1, other, rows, at);
  }
  return rows;
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

/** All packets of one direction of a row. */
export function packetsOf(rows: Float64Array, bits: number, at: number): number {
  let packets = 0;
  for (let kind = 0; kind < kindsOf(bits); kind += 1) packets += rows[at + kind * 2]!;
  return packets;
}
