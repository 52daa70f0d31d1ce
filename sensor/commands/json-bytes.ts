/**
 * Text of JSON as bytes: numbers, addresses and ASCII, written one after the other without a string in between.
 *
 * A long reading has hundreds of thousands of rows; strings of them would cost more than finding them.
 */

/** Room that a row may need at most: two names of 253 characters and everything around them. */
const rowBytesMax = 4096;
const pieceBytes = 65_536;

const digits = new Uint8Array([...'0123456789abcdef'].map((digit) => digit.charCodeAt(0)));
const colon = 0x3a;
const dot = 0x2e;

export class JsonBytes {
  readonly #bytes = Buffer.allocUnsafe(pieceBytes + rowBytesMax);
  readonly #write: (bytes: Uint8Array) => void;
  readonly #scratch = new Uint8Array(24);
  readonly #groups = new Uint16Array(8);
  #at = 0;

  /** Hands pieces to `write`, which has to take them before it returns. */
  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
  }

  /** Short ASCII text that JSON does not escape. */
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

  /** Text in quotes, or null. */
  quoted(text: string | null): this {
    return text === null ? this.ascii('null') : this.ascii('"').ascii(text).ascii('"');
  }

  /** A whole number that is not negative. */
  number(value: number): this {
    // Beyond 2^31 integer arithmetic on 32 bits ends; those are rare.
    if (value > 0x7fffffff) return this.ascii(String(value));
    const scratch = this.#scratch;
    let rest = value | 0;
    let from = scratch.length;
    do {
      const next = (rest / 10) | 0;
      from -= 1;
      scratch[from] = digits[rest - next * 10]!;
      rest = next;
    } while (rest > 0);
    const bytes = this.#bytes;
    let at = this.#at;
    for (; from < scratch.length; from += 1) {
      bytes[at] = scratch[from]!;
      at += 1;
    }
    this.#at = at;
    return this;
  }

  /** An address in words, as RFC 5952 writes it. */
  address(version: number, words: Int32Array, at: number): this {
    if (version === 4) return this.#quad(words[at + 3]!);
    if (words[at] === 0 && words[at + 1] === 0 && words[at + 2] === 0xffff)
      return this.ascii('::ffff:').#quad(words[at + 3]!);
    const groups = this.#groups;
    for (let word = 0; word < 4; word += 1) {
      groups[word * 2] = words[at + word]! >>> 16;
      groups[word * 2 + 1] = words[at + word]! & 0xffff;
    }
    let bestStart = -1;
    let bestLength = 1;
    for (let start = 0; start < 8; start += 1) {
      let length = 0;
      while (start + length < 8 && groups[start + length] === 0) length += 1;
      if (length > bestLength) {
        bestStart = start;
        bestLength = length;
      }
    }
    for (let group = 0; group < 8; group += 1) {
      if (group === bestStart) {
        this.ascii('::');
        group += bestLength - 1;
        continue;
      }
      const isBehindZeros = bestStart >= 0 && group === bestStart + bestLength;
      if (group > 0 && !isBehindZeros) this.#bytes[this.#at++] = colon;
      this.#hex(groups[group]!);
    }
    return this;
  }

  /** Ends a row: what was written may leave. */
  endRow(): void {
    if (this.#at >= pieceBytes) this.flush();
  }

  /** Text of any length and any characters. */
  text(text: string): void {
    this.flush();
    this.#write(Buffer.from(text));
  }

  flush(): void {
    if (this.#at > 0) this.#write(this.#bytes.subarray(0, this.#at));
    this.#at = 0;
  }

  #quad(word: number): this {
    this.number(word >>> 24);
    this.#bytes[this.#at++] = dot;
    this.number((word >>> 16) & 255);
    this.#bytes[this.#at++] = dot;
    this.number((word >>> 8) & 255);
    this.#bytes[this.#at++] = dot;
    return this.number(word & 255);
  }

  #hex(group: number): void {
    let shift = group > 0xfff ? 12 : group > 0xff ? 8 : group > 0xf ? 4 : 0;
    for (; shift >= 0; shift -= 4) this.#bytes[this.#at++] = digits[(group >>> shift) & 15]!;
  }
}
