/**
 * Rows in ClickHouse's format Native: the number of columns and of rows, then each column with its name, its type and its values one
 * after the other (https://clickhouse.com/docs/interfaces/formats/Native). The server takes such values as they lie; text it would have
 * to read field by field, at several times the cost. Where a table's column has another type, the server converts.
 *
 * Columns are filled from rows, one column after the other.
 */

/** Types of columns, in little endian where they are numbers. */
type NumberType = 'UInt8' | 'UInt32' | 'Int32' | 'UInt64' | 'DateTime';

/** A column of rows of one kind. */
export interface Column<Row> {
  readonly name: string;
  /** Its name and type, as they stand before its values. */
  readonly head: Uint8Array;
  fill(): FilledColumn<Row>;
}

interface FilledColumn<Row> {
  add(rows: readonly Row[]): void;
  /** What was added. Valid until `end`. */
  bytes(): Uint8Array;
  /** Nothing is added any more. */
  end(): void;
}

/** A column of whole numbers; one that the type can't hold is refused. */
export const numbers = <Row>(type: NumberType, name: string, of: (row: Row) => number): Column<Row> => ({
  ...{ name, head: headOf(name, type) },
  fill: () => fillNumbers(type, of),
});

/** A column of text. */
export const texts = <Row>(name: string, of: (row: Row) => string): Column<Row> => ({
  ...{ name, head: headOf(name, 'String') },
  fill: () => fillStrings((row) => bytesOfText(of(row))),
});

/** A column of bytes, such as those of an address. */
export const bytes = <Row>(name: string, of: (row: Row) => Uint8Array): Column<Row> => ({
  ...{ name, head: headOf(name, 'String') },
  fill: () => fillStrings(of),
});

const widths: Readonly<Record<NumberType, number>> = {
  UInt8: 1,
  UInt32: 4,
  Int32: 4,
  UInt64: 8,
  DateTime: 4,
};
const half = 2 ** 32;

function fillNumbers<Row>(type: NumberType, of: (row: Row) => number): FilledColumn<Row> {
  const width = widths[type];
  const into = growing();
  return {
    add(rows) {
      const to = into.room(rows.length * width);
      let at = into.end();
      for (const row of rows) {
        const value = of(row);
        if (width === 1) to.writeUInt8(value, at);
        else if (type === 'Int32') to.writeInt32LE(value, at);
        else if (width === 4) to.writeUInt32LE(value, at);
        else {
          to.writeUInt32LE(value % half, at);
          to.writeUInt32LE(Math.floor(value / half), at + 4);
        }
        at += width;
      }
      into.endAt(at);
    },
    bytes: into.bytes,
    end: into.free,
  };
}

/** Longest length of a string in bytes, as it is written. */
const lengthMax = 5;

function fillStrings<Row>(of: (row: Row) => Uint8Array): FilledColumn<Row> {
  const into = growing();
  return {
    add(rows) {
      for (const row of rows) {
        const value = of(row);
        const { length } = value;
        const to = into.room(lengthMax + length);
        let at = writeVarint(to, into.end(), length);
        // Names and addresses are short: a call costs more than their bytes.
        if (length > 32) to.set(value, at);
        else for (let i = 0; i < length; i += 1) to[at + i] = value[i]!;
        at += length;
        into.endAt(at);
      }
    },
    bytes: into.bytes,
    end: into.free,
  };
}

/** Memory that is used again: large pieces made anew for every batch keep the collector busy. */
const spare: Buffer[] = [];
const spareMax = 128;
const spareBytesMax = 1024 * 1024;

/** Bytes that are written one after the other. */
function growing() {
  let held = spare.pop() ?? Buffer.allocUnsafeSlow(4096);
  let end = 0;
  return {
    /** Where to write: there is room for so many bytes behind the end. */
    room(more: number): Buffer {
      if (end + more > held.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(end + more, 2 * held.length));
        held.copy(larger, 0, 0, end);
        held = larger;
      }
      return held;
    },
    end: () => end,
    endAt(at: number) {
      end = at;
    },
    bytes: () => held.subarray(0, end),
    free() {
      if (spare.length < spareMax && held.length <= spareBytesMax) spare.push(held);
    },
  };
}

/** Texts whose bytes are remembered between rows: few names are told of again and again. */
const knownMax = 65_536;
let known = new Map<string, Uint8Array>();

function bytesOfText(text: string): Uint8Array {
  let held = known.get(text);
  if (held !== undefined) return held;
  // Memory of its own: a small Buffer would hold on to the whole piece that it is a part of.
  held = new TextEncoder().encode(text);
  if (known.size >= knownMax) known = new Map();
  known.set(text, held);
  return held;
}

/** Returns where it ends. */
function writeVarint(to: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  while (rest > 127) {
    to[at] = (rest % 128) + 128;
    rest = Math.floor(rest / 128);
    at += 1;
  }
  to[at] = rest;
  return at + 1;
}

/** Rows of one table that are sent together. */
export class Rows<Row> {
  readonly names: readonly string[];
  readonly #columns: readonly Column<Row>[];
  #filled: FilledColumn<Row>[] | null;
  #count = 0;

  constructor(columns: readonly Column<Row>[]) {
    this.names = columns.map(({ name }) => name);
    this.#columns = columns;
    this.#filled = columns.map((column) => column.fill());
  }

  get count(): number {
    return this.#count;
  }

  add(rows: readonly Row[]): void {
    for (const column of this.#open()) column.add(rows);
    this.#count += rows.length;
  }

  /** The rows as one block. It is made once, and nothing is added afterwards. */
  encode(): Buffer {
    const filled = this.#open();
    this.#filled = null;
    const pieces = [varints(filled.length, this.#count)];
    for (const [i, column] of filled.entries()) pieces.push(this.#columns[i]!.head, column.bytes());
    const block = Buffer.concat(pieces);
    for (const column of filled) column.end();
    return block;
  }

  #open(): FilledColumn<Row>[] {
    if (!this.#filled) throw new Error('These rows were encoded before.');
    return this.#filled;
  }
}

function varints(...values: number[]): Uint8Array {
  const to = new Uint8Array(values.length * lengthMax);
  return to.subarray(
    0,
    values.reduce((at, value) => writeVarint(to, at, value), 0),
  );
}

const headOf = (...texts: string[]): Uint8Array =>
  Buffer.concat(texts.flatMap((text) => [varints(Buffer.byteLength(text)), Buffer.from(text)]));
