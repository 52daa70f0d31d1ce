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

/** A class, since every field of telemetry passes here: its methods are shared and its fields have fixed places. */
export class RowWriter {
  /** Rows begun. */
  count = 0;
  private buffer: Buffer;
  private view: DataView;
  private at: number;

  constructor(bytesExpected = 65_536) {
    this.buffer = Buffer.allocUnsafe(Math.max(bytesExpected, 1024));
    this.view = viewOf(this.buffer);
    this.at = signature.copy(this.buffer);
  }

  row(columns: number): void {
    const at = this.take(2);
    this.view.setInt16(at, columns);
    this.count += 1;
  }

  smallint(value: number): void {
    if ((value << 16) >> 16 !== value) throw outOfRange(value);
    const at = this.take(6);
    this.view.setInt32(at, 2);
    this.view.setInt16(at + 4, value);
  }

  integer(value: number | null): void {
    if (value === null) {
      this.none();
      return;
    }
    if ((value | 0) !== value) throw outOfRange(value);
    const at = this.take(8);
    this.view.setInt32(at, 4);
    this.view.setInt32(at + 4, value);
  }

  bigint(value: number | null): void {
    if (value === null) {
      this.none();
      return;
    }
    if (!Number.isSafeInteger(value)) throw outOfRange(value);
    const at = this.take(12);
    const high = Math.floor(value / 0x1_0000_0000);
    this.view.setInt32(at, 8);
    this.view.setInt32(at + 4, high);
    this.view.setUint32(at + 8, value - high * 0x1_0000_0000);
  }

  boolean(value: boolean): void {
    const at = this.take(5);
    this.view.setInt32(at, 1);
    this.buffer[at + 4] = value ? 1 : 0;
  }

  text(value: string): void {
    // Three bytes a UTF-16 unit is the most that UTF-8 takes.
    this.room(4 + value.length * 3);
    const { at, buffer } = this;
    const length = writeAscii(buffer, at + 4, value) ? value.length : buffer.write(value, at + 4, 'utf8');
    this.view.setInt32(at, length);
    this.at += 4 + length;
  }

  /** Unix milliseconds; null for none. */
  timestamp(unixMs: number | null): void {
    if (unixMs === null) this.none();
    else this.bigint((unixMs - epochMs) * 1000);
  }

  inet(address: string | null): void {
    if (address === null) {
      this.none();
      return;
    }
    const ipv4 = readIpv4(address);
    if (ipv4 < 0) {
      const bytes = inet6Bytes(address);
      const at = this.take(bytes.length);
      bytes.copy(this.buffer, at);
      return;
    }
    const at = this.take(12);
    this.view.setInt32(at, 8);
    this.view.setInt32(at + 4, ipv4Head);
    this.view.setUint32(at + 8, ipv4);
  }

  finish(): Uint8Array {
    const at = this.take(2);
    this.view.setInt16(at, -1);
    return this.buffer.subarray(0, this.at);
  }

  private none(): void {
    const at = this.take(4);
    this.view.setInt32(at, -1);
  }

  /** Where the next so many bytes go. The buffer and its view may be others afterwards. */
  private take(bytes: number): number {
    this.room(bytes);
    const { at } = this;
    this.at += bytes;
    return at;
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + bytes));
    this.buffer.copy(larger, 0, 0, this.at);
    this.buffer = larger;
    this.view = viewOf(larger);
  }
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
function inet6Bytes(address: string): Buffer {
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
