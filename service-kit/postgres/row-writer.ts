/**
 * Rows in PostgreSQL's binary COPY format, written into one growing buffer: no object, string or array a row.
 *
 * Call `row(columns)` and then one method for each column in order; `finish` gives the bytes. Numbers are whole and at
 * most 2^53; addresses are canonical text.
 */
import { parseAddress } from '#common/ip/index.ts';

const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
/** PostgreSQL counts time from 2000-01-01. */
const epochMs = 946_684_800_000;
/** Addresses whose bytes are remembered between rows. */
const knownMax = 65_536;
const knownAddresses = new Map<string, Buffer>();

export interface RowWriter {
  /** Rows begun. */
  readonly count: number;
  row(columns: number): void;
  smallint(value: number): void;
  integer(value: number | null): void;
  bigint(value: number): void;
  boolean(value: boolean): void;
  text(value: string): void;
  /** Unix milliseconds; null for none. */
  timestamp(unixMs: number | null): void;
  inet(address: string | null): void;
  finish(): Uint8Array;
}

export function createRowWriter(bytesExpected = 65_536): RowWriter {
  let buffer = Buffer.allocUnsafe(Math.max(bytesExpected, 1024));
  let at = signature.copy(buffer);
  let count = 0;

  function room(bytes: number): void {
    if (at + bytes <= buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + bytes));
    buffer.copy(larger, 0, 0, at);
    buffer = larger;
  }
  function none(): void {
    room(4);
    at = buffer.writeInt32BE(-1, at);
  }
  function whole(value: number): void {
    room(12);
    at = buffer.writeInt32BE(8, at);
    const high = Math.floor(value / 0x1_0000_0000);
    at = buffer.writeInt32BE(high, at);
    at = buffer.writeUInt32BE(value - high * 0x1_0000_0000, at);
  }

  return {
    get count() {
      return count;
    },
    row(columns) {
      room(2);
      at = buffer.writeInt16BE(columns, at);
      count += 1;
    },
    smallint(value) {
      room(6);
      at = buffer.writeInt32BE(2, at);
      at = buffer.writeInt16BE(value, at);
    },
    integer(value) {
      if (value === null) return none();
      room(8);
      at = buffer.writeInt32BE(4, at);
      at = buffer.writeInt32BE(value, at);
    },
    bigint: whole,
    boolean(value) {
      room(5);
      at = buffer.writeInt32BE(1, at);
      at = buffer.writeUInt8(value ? 1 : 0, at);
    },
    text(value) {
      // Three bytes a UTF-16 unit is the most that UTF-8 takes.
      room(4 + value.length * 3);
      const length = buffer.write(value, at + 4, 'utf8');
      buffer.writeInt32BE(length, at);
      at += 4 + length;
    },
    timestamp(unixMs) {
      if (unixMs === null) none();
      else whole((unixMs - epochMs) * 1000);
    },
    inet(address) {
      if (address === null) return none();
      const bytes = inetBytes(address);
      room(bytes.length);
      at += bytes.copy(buffer, at);
    },
    finish() {
      room(2);
      at = buffer.writeInt16BE(-1, at);
      return buffer.subarray(0, at);
    },
  };
}

/** The field of an address: length, family, bits, "no network", length of the address, address. */
function inetBytes(address: string): Buffer {
  const known = knownAddresses.get(address);
  if (known) return known;
  const bytes = parseAddress(address);
  if (!bytes) throw new Error(`${address} is no address`);
  const field = Buffer.alloc(8 + bytes.length);
  field.writeInt32BE(4 + bytes.length, 0);
  field.set([bytes.length === 4 ? 2 : 3, bytes.length * 8, 0, bytes.length], 4);
  field.set(bytes, 8);
  if (knownAddresses.size >= knownMax) knownAddresses.clear();
  knownAddresses.set(address, field);
  return field;
}
