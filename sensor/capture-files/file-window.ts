import type { ByteSource } from './byte-source.ts';

const pieceBytes = 262_144;

/** A window into the file: `at` moves forward, and `has(n)` loads n bytes from there. */
export class FileWindow {
  bytes = new Uint8Array(pieceBytes);
  view = new DataView(this.bytes.buffer);
  at = 0;
  readonly source: ByteSource;
  /** Index after the file's last byte in the window. */
  limit = 0;
  #isAtEnd = false;
  #isClosed = false;

  constructor(source: ByteSource) {
    this.source = source;
  }

  has(count: number): boolean {
    if (this.limit - this.at >= count) return true;
    if (this.#isAtEnd) return false;
    this.#fill(count);
    return this.limit - this.at >= count;
  }

  /** True when every byte was consumed. */
  isEmpty(): boolean {
    return !this.has(1);
  }

  uint16(offset: number, isLittle: boolean): number {
    return this.view.getUint16(this.at + offset, isLittle);
  }

  uint32(offset: number, isLittle: boolean): number {
    return this.view.getUint32(this.at + offset, isLittle);
  }

  /** Skips `count` bytes, in the buffer or not. Returns false when the file ends before. */
  skip(count: number): boolean {
    let left = count;
    while (left > 0) {
      const step = Math.min(left, pieceBytes);
      if (!this.has(step)) return false;
      this.at += step;
      left -= step;
    }
    return true;
  }

  close(): void {
    if (!this.#isClosed) this.source.close();
    this.#isClosed = true;
    this.#isAtEnd = true;
  }

  #fill(count: number): void {
    const held = this.limit - this.at;
    if (count > this.bytes.length) {
      const larger = new Uint8Array(Math.ceil(count / pieceBytes) * pieceBytes);
      larger.set(this.bytes.subarray(this.at, this.limit));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    } else this.bytes.copyWithin(0, this.at, this.limit);
    this.at = 0;
    this.limit = held;
    while (this.limit < count) {
      const got = this.source.read(this.bytes, this.limit, this.bytes.length - this.limit);
      if (got === 0) {
        this.#isAtEnd = true;
        return;
      }
      this.limit += got;
    }
  }
}
