/**
 * Writes JSON as bytes: numbers, addresses and ASCII, without strings.
 *
 * A long reading has hundreds of thousands of rows; creating strings would cost more than finding the rows. Constant
 * text is written eight bytes at a time, numbers two digits at a time. A write may go beyond its end; the next one
 * starts at the end of the text.
 */

/** Maximum size of a row: two names of 253 characters and everything around them. */
const rowBytesMax = 4096;
const pieceBytes = 65_536;

const colon = 0x3a;
const hexDigits = new Uint8Array([...'0123456789abcdef'].map((digit) => digit.charCodeAt(0)));
/** Two characters for each number below 100, and for each byte in hexadecimal. */
const decimalPairs = Uint16Array.from({ length: 100 }, (_, value) => pairOf(String(value).padStart(2, '0')));
const hexPairs = Uint16Array.from({ length: 256 }, (_, value) => pairOf(value.toString(16).padStart(2, '0')));
/** Each byte in decimal with a dot after it, and its length. */
const dotted = Int32Array.from({ length: 256 }, (_, value) => {
  const text = `${value}.`.padEnd(4);
  return (pairOf(text.slice(0, 2)) << 16) | pairOf(text.slice(2));
});
const dottedLengths = Uint8Array.from({ length: 256 }, (_, value) => String(value).length + 1);
/** Index: one bit for each zero group of an address. Value: start and length of the longest run of two or more. */
const zeroRuns = Uint8Array.from({ length: 256 }, (_, zeros) => longestRun(zeros));

/** Constant ASCII text for `put`. */
export interface JsonText {
  readonly words: Float64Array;
  readonly length: number;
}

/** Prepares constant text for `put`: ASCII that JSON does not escape. */
export function jsonText(text: string): JsonText {
  const bytes = new Uint8Array(Math.ceil(text.length / 8) * 8);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  const view = new DataView(bytes.buffer);
  // ASCII bytes never form a NaN, which might not be copied bit by bit.
  const words = Float64Array.from({ length: bytes.length / 8 }, (_, word) => view.getFloat64(word * 8));
  return { words, length: text.length };
}

export class JsonBytes {
  readonly #bytes = Buffer.allocUnsafeSlow(pieceBytes + rowBytesMax);
  readonly #view = new DataView(this.#bytes.buffer);
  readonly #write: (bytes: Uint8Array) => void;
  #at = 0;

  /** Passes pieces to `write`, which must use them before it returns. */
  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
  }

  /** Writes constant text. */
  put({ words, length }: JsonText): this {
    const view = this.#view;
    let at = this.#at;
    this.#at = at + length;
    for (let word = 0; word < words.length; word += 1) {
      view.setFloat64(at, words[word]!);
      at += 8;
    }
    return this;
  }

  /** Writes short ASCII text that JSON does not escape. */
  ascii(text: string): this {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < text.length; i += 1) {
      bytes[at] = text.charCodeAt(i);
      at += 1;
    }
    this.#at = at;
    return this;
  }

  /** Writes one byte of ASCII. */
  byte(byte: number): void {
    this.#bytes[this.#at] = byte;
    this.#at += 1;
  }

  /** Writes text in quotes, or null. */
  quoted(text: string | null): this {
    return text === null ? this.ascii('null') : this.ascii('"').ascii(text).ascii('"');
  }

  /** Writes a non-negative integer. */
  number(value: number): this {
    // 32-bit integer arithmetic ends at 2^31; larger numbers are rare.
    if (value > 0x7fffffff) return this.ascii(String(value));
    let rest = value | 0;
    const start = this.#at;
    let at = start + digitCount(rest);
    this.#at = at;
    while (rest > 9) {
      const next = (rest / 100) | 0;
      at -= 2;
      this.#view.setUint16(at, decimalPairs[rest - next * 100]!);
      rest = next;
    }
    if (at > start) this.#bytes[start] = hexDigits[rest]!;
    return this;
  }

  /** Writes an address in the form of RFC 5952. */
  address(version: number, words: Int32Array, at: number): this {
    if (version === 4) return this.#quad(words[at + 3]!);
    const a = words[at]!;
    const b = words[at + 1]!;
    const c = words[at + 2]!;
    const d = words[at + 3]!;
    if (a === 0 && b === 0 && c === 0xffff) return this.ascii('::ffff:').#quad(d);
    const run = zeroRuns[zeroGroups(a) | (zeroGroups(b) << 2) | (zeroGroups(c) << 4) | (zeroGroups(d) << 6)]!;
    const start = run >> 4;
    const end = start + (run & 15);
    for (let group = 0; group < 8; group += 1) {
      if (run !== 0 && group >= start && group < end) continue;
      if (run !== 0 && group === end) {
        // The first of the two colons is after the previous group, if any.
        if (start === 0) this.byte(colon);
        this.byte(colon);
      }
      const word = words[at + (group >> 1)]!;
      this.#hex((group & 1) === 0 ? word >>> 16 : word & 0xffff);
      this.byte(colon);
    }
    // Removes the last colon, unless it is part of a final `::`.
    if (run !== 0 && end === 8) {
      if (start === 0) this.byte(colon);
      this.byte(colon);
    } else this.#at -= 1;
    return this;
  }

  /** Ends a row; the text before may be passed on. */
  endRow(): void {
    if (this.#at >= pieceBytes) this.flush();
  }

  /** Writes text of any length and characters. */
  text(text: string): void {
    this.raw(Buffer.from(text));
  }

  /** Writes bytes that are JSON already, any number of them. */
  raw(bytes: Uint8Array): void {
    this.flush();
    this.#write(bytes);
  }

  flush(): void {
    if (this.#at > 0) this.#write(this.#bytes.subarray(0, this.#at));
    this.#at = 0;
  }

  #quad(word: number): this {
    const view = this.#view;
    let at = this.#at;
    for (let shift = 24; shift >= 0; shift -= 8) {
      const byte = (word >>> shift) & 255;
      view.setInt32(at, dotted[byte]!);
      at += dottedLengths[byte]!;
    }
    this.#at = at - 1;
    return this;
  }

  #hex(group: number): void {
    if (group > 0xff) {
      if (group > 0xfff) {
        this.#view.setUint16(this.#at, hexPairs[group >> 8]!);
        this.#at += 2;
      } else this.byte(hexDigits[group >> 8]!);
    } else if (group <= 0xf) {
      this.byte(hexDigits[group]!);
      return;
    }
    this.#view.setUint16(this.#at, hexPairs[group & 255]!);
    this.#at += 2;
  }
}

function digitCount(value: number): number {
  if (value < 10_000) return value < 100 ? (value < 10 ? 1 : 2) : value < 1000 ? 3 : 4;
  if (value < 1_000_000) return value < 100_000 ? 5 : 6;
  if (value < 100_000_000) return value < 10_000_000 ? 7 : 8;
  return value < 1_000_000_000 ? 9 : 10;
}

/** One bit for each of the word's two groups that is zero, the lowest for the first. */
function zeroGroups(word: number): number {
  return (word >>> 16 === 0 ? 1 : 0) | ((word & 0xffff) === 0 ? 2 : 0);
}

function longestRun(zeros: number): number {
  let best = 0;
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (start + length < 8 && (zeros & (1 << (start + length))) !== 0) length += 1;
    if (length > 1 && length > (best & 15)) best = (start << 4) | length;
  }
  return best;
}

function pairOf(text: string): number {
  return (text.charCodeAt(0) << 8) | text.charCodeAt(1);
}
