/**
 * Rows in PostgreSQL's binary COPY format, written into one growing buffer: no object, string or array a row.
 *
 * Call `row(columns)` and then one method for each column in order; `finish` gives the bytes. Numbers are whole and at
 * most 2^53; addresses are canonical text.
 */
import { parseAddress, readIpv4 } from '#common/ip/index.ts';

const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
/** PostgreSQL counts time from 2000-01-01. */
const epochMs = 946_684_800_000;
/** IPv6 addresses whose bytes are remembered between rows. */
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
  let view = viewOf(buffer);
  let at = signature.copy(buffer);
  let count = 0;

  function room(bytes: number): void {
    if (at + bytes <= buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + bytes));
    buffer.copy(larger, 0, 0, at);
    buffer = larger;
    view = viewOf(buffer);
  }
  function none(): void {
    room(4);
    view.setInt32(at, -1);
    at += 4;
  }
  function whole(value: number): void {
    if (!Number.isSafeInteger(value)) throw outOfRange(value);
    room(12);
    const high = Math.floor(value / 0x1_0000_0000);
    view.setInt32(at, 8);
    view.setInt32(at + 4, high);
    view.setUint32(at + 8, value - high * 0x1_0000_0000);
    at += 12;
  }

  return {
    get count() {
      return count;
    },
    row(columns) {
      room(2);
      view.setInt16(at, columns);
      at += 2;
      count += 1;
    },
    smallint(value) {
      if ((value << 16) >> 16 !== value) throw outOfRange(value);
      room(6);
      view.setInt32(at, 2);
      view.setInt16(at + 4, value);
      at += 6;
    },
    integer(value) {
      if (value === null) return none();
      if ((value | 0) !== value) throw outOfRange(value);
      room(8);
      view.setInt32(at, 4);
      view.setInt32(at + 4, value);
      at += 8;
    },
    bigint: whole,
    boolean(value) {
      room(5);
      view.setInt32(at, 1);
      buffer[at + 4] = value ? 1 : 0;
      at += 5;
    },
    text(value) {
      // Three bytes a UTF-16 unit is the most that UTF-8 takes.
      room(4 + value.length * 3);
      const length = writeAscii(buffer, at + 4, value) ? value.length : buffer.write(value, at + 4, 'utf8');
      view.setInt32(at, length);
      at += 4 + length;
    },
    timestamp(unixMs) {
      if (unixMs === null) none();
      else whole((unixMs - epochMs) * 1000);
    },
    inet(address) {
      if (address === null) return none();
      const ipv4 = readIpv4(address);
      if (ipv4 >= 0) {
        room(12);
        view.setInt32(at, 8);
        view.setInt32(at + 4, ipv4Head);
        view.setUint32(at + 8, ipv4);
        at += 12;
        return;
      }
      const bytes = inetBytes(address);
      room(bytes.length);
      at += bytes.copy(buffer, at);
    },
    finish() {
      room(2);
      view.setInt16(at, -1);
      at += 2;
      return buffer.subarray(0, at);
    },
  };
}

const outOfRange = (value: number) => new RangeError(`${value} does not fit its column`);

const viewOf = (buffer: Buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.length);

/** Family, bits, "no network" and length of an IPv4 address. */
const ipv4Head = 0x02_20_00_04;
/** Texts up to this length cost less here than a call into Node's own encoder. */
const asciiMax = 64;

/** Writes a short text of ASCII; false for any other. */
function writeAscii(buffer: Buffer, at: number, text: string): boolean {
  if (text.length > asciiMax) return false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 127) return false;
    buffer[at + i] = code;
  }
  return true;
}

/** The field of an IPv6 address: length, family, bits, "no network", length of the address, address. */
function inetBytes(address: string): Buffer {
  const known = knownAddresses.get(address);
  if (known) return known;
  const bytes = parseAddress(address);
  if (!bytes) throw new Error(`${address} is no address`);
  const field = Buffer.alloc(8 + bytes.length);
  field.writeInt32BE(4 + bytes.length, 0);
  field.set([3, bytes.length * 8, 0, bytes.length], 4);
  field.set(bytes, 8);
  if (knownAddresses.size >= knownMax) knownAddresses.clear();
  knownAddresses.set(address, field);
  return field;
}
