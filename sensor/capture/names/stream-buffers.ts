/**
 * Buffers of 4 KiB for streams whose next unit is incomplete or after a gap.
 *
 * A buffer holds bytes from the stream's expected position on, in any order of arrival; the first copy of a byte wins.
 * When all buffers are in use, the oldest one is taken back and its owner is notified.
 */
import type { ResumePoint } from './client-hello.ts';

/** Bytes in one buffer (NET-8.6). */
export const bufferBytes = 4096;
const mapBytes = bufferBytes / 8;

export class StreamBuffers {
  readonly data: Uint8Array;
  /** For each buffer: contiguous bytes from its start, how many of them were read, and the end of the received data. */
  readonly contiguous: Int32Array;
  readonly read: Int32Array;
  readonly highest: Int32Array;
  /** Segments that came without closing the gap. */
  readonly stalled: Int32Array;
  /** Contiguous bytes at the last attempt to continue a hello. */
  readonly tried: Int32Array;
  /** Bytes that the next attempt needs, or -1 for a line feed. */
  readonly needs: Int32Array;

  /** Position at which a hello larger than the buffer continues, three words for each buffer. */
  readonly #points: Int32Array;
  readonly #buffersMax: number;
  readonly #onTaken: (owner: number) => void;
  readonly #owner: Int32Array;
  /** One bit for each received byte. */
  readonly #map: Uint8Array;
  #hand = 0;

  constructor(buffersMax: number, onTaken: (owner: number) => void) {
    this.#buffersMax = buffersMax;
    this.#onTaken = onTaken;
    this.data = new Uint8Array(buffersMax * bufferBytes);
    this.#map = new Uint8Array(buffersMax * mapBytes);
    this.#owner = new Int32Array(buffersMax).fill(-1);
    this.contiguous = new Int32Array(buffersMax);
    this.read = new Int32Array(buffersMax);
    this.highest = new Int32Array(buffersMax);
    this.stalled = new Int32Array(buffersMax);
    this.needs = new Int32Array(buffersMax);
    this.tried = new Int32Array(buffersMax);
    this.#points = new Int32Array(buffersMax * 3);
  }

  /** Assigns an empty buffer to `owner`. */
  lend(owner: number): number {
    let buffer = this.#hand;
    for (let i = 0; i < 8 && this.#owner[buffer] !== -1; i += 1) buffer = (this.#hand + i) % this.#buffersMax;
    if (this.#owner[buffer] !== -1) {
      buffer = this.#hand;
      this.#onTaken(this.#owner[buffer]!);
    }
    this.#hand = (buffer + 1) % this.#buffersMax;
    this.#owner[buffer] = owner;
    this.#map.fill(0, buffer * mapBytes, (buffer + 1) * mapBytes);
    this.contiguous[buffer] = this.read[buffer] = this.highest[buffer] = 0;
    this.stalled[buffer] = this.needs[buffer] = this.tried[buffer] = 0;
    return buffer;
  }

  /** Releases a buffer. */
  release(buffer: number): void {
    this.#owner[buffer] = -1;
  }

  /** Stores the position at which the hello in the buffer continues. */
  savePoint(buffer: number, point: ResumePoint): void {
    this.#points[buffer * 3] = point.recordLeft;
    this.#points[buffer * 3 + 1] = point.extensionsLeft;
    this.#points[buffer * 3 + 2] = point.skipLeft;
  }

  /** Loads the position that `savePoint` stored. */
  loadPoint(buffer: number, point: ResumePoint): void {
    point.recordLeft = this.#points[buffer * 3]!;
    point.extensionsLeft = this.#points[buffer * 3 + 1]!;
    point.skipLeft = this.#points[buffer * 3 + 2]!;
  }

  /** Copies bytes that are missing, `ahead` bytes from the start. */
  copy(buffer: number, ahead: number, bytes: Uint8Array, from: number, end: number): void {
    const { data } = this;
    const map = this.#map;
    const dataBase = buffer * bufferBytes;
    const mapBase = buffer * mapBytes;
    const stop = Math.min(bufferBytes, ahead + end - from);
    for (let at = ahead; at < stop; at += 1) {
      const cell = mapBase + (at >> 3);
      const bit = 1 << (at & 7);
      if ((map[cell]! & bit) !== 0) continue;
      map[cell]! |= bit;
      data[dataBase + at] = bytes[from + at - ahead]!;
    }
    if (stop > this.highest[buffer]!) this.highest[buffer] = stop;
    this.#extend(buffer, ahead, stop);
  }

  /** True when the contiguous data contains a line feed after position `since`. */
  hasLineSince(buffer: number, since: number): boolean {
    const dataBase = buffer * bufferBytes;
    const end = dataBase + this.contiguous[buffer]!;
    for (let at = dataBase + since; at < end; at += 1) if (this.data[at] === 0x0a) return true;
    return false;
  }

  /** Moves unread bytes to the start of the buffer. */
  compact(buffer: number): void {
    const read = this.read[buffer]!;
    const dataBase = buffer * bufferBytes;
    this.data.copyWithin(dataBase, dataBase + read, dataBase + bufferBytes);
    this.#moveMap(buffer, -read);
    this.contiguous[buffer]! -= read;
    this.highest[buffer]! -= read;
    this.read[buffer] = 0;
  }

  /** Makes room for `count` bytes before the buffer's start; the caller has checked that they fit. */
  shift(buffer: number, count: number): void {
    const dataBase = buffer * bufferBytes;
    this.data.copyWithin(dataBase + count, dataBase, dataBase + bufferBytes - count);
    this.#moveMap(buffer, count);
    this.contiguous[buffer] = 0;
    this.highest[buffer]! += count;
    this.needs[buffer] = 0;
  }

  #extend(buffer: number, ahead: number, stop: number): void {
    const map = this.#map;
    const mapBase = buffer * mapBytes;
    const highest = this.highest[buffer]!;
    let contiguous = this.contiguous[buffer]!;
    if (ahead <= contiguous && stop > contiguous) contiguous = stop;
    while (contiguous < highest && (map[mapBase + (contiguous >> 3)]! & (1 << (contiguous & 7))) !== 0) {
      contiguous += 1;
    }
    this.contiguous[buffer] = contiguous;
  }

  #moveMap(buffer: number, by: number): void {
    const held = this.#map.slice(buffer * mapBytes, (buffer + 1) * mapBytes);
    this.#map.fill(0, buffer * mapBytes, (buffer + 1) * mapBytes);
    for (let from = Math.max(0, -by); from < bufferBytes && from + by < bufferBytes; from += 1) {
      if ((held[from >> 3]! & (1 << (from & 7))) === 0) continue;
      this.#map[buffer * mapBytes + ((from + by) >> 3)]! |= 1 << ((from + by) & 7);
    }
  }
}
