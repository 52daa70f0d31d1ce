/**
 * Buffers of 4 KiB for streams whose next unit is incomplete or after a gap.
 *
 * A buffer holds bytes from the stream's expected position on, in any order of arrival; the first copy of a byte wins.
 * When all buffers are in use, the oldest one is taken back and its owner is notified.
 */

import { Field, Flag, flowWords } from '../flows/flow-record.ts';
import { helloNeeds, type ResumePoint, resumePoint } from './client-hello.ts';
import { Mode, readUnit, unit, unitNeedsMore } from './stream-units.ts';

/** Bytes in one buffer (NET-8.6). */
export const bufferBytes = 4096;
const mapBytes = bufferBytes / 8;

class StreamBuffers {
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

// A client's or server's stream as three words of its flow's record: the sequence number that is expected next, the mode
// with the bytes consumed so far, and the lent buffer. A stream is named by the position of its first word.

const wordsPerStream = 3;
const modeMask = 0xff;
const consumedShift = 8;
/** Larger numbers of consumed bytes are stored as this one. */
const consumedMax = 0xffff;

/** The stream of a side of the flow at `base`. */
export function streamOf(base: number, side: number): number {
  return base + Field.stream + side * wordsPerStream;
}

/** Where the record of a stream's flow starts. */
export function baseOf(stream: number): number {
  return stream - (stream % flowWords);
}

export function sideOf(stream: number): number {
  return stream % flowWords === Field.stream ? 0 : 1;
}

/** The stream of the flow's other side. */
function otherStream(stream: number): number {
  return sideOf(stream) === 0 ? stream + wordsPerStream : stream - wordsPerStream;
}

export class StreamWords {
  readonly #words: Int32Array;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  /** Sequence number of the byte that is expected next. */
  expected(stream: number): number {
    return this.#words[stream]!;
  }

  setExpected(stream: number, sequence: number): void {
    this.#words[stream] = sequence;
  }

  /** These bytes are behind the stream. */
  advance(stream: number, distance: number): void {
    this.#words[stream] = (this.#words[stream]! + distance) | 0;
  }

  /** How far this sequence number is ahead of the expected one; negative behind it. */
  aheadBy(stream: number, sequence: number): number {
    return (sequence - this.#words[stream]!) | 0;
  }

  mode(stream: number): number {
    return this.#words[stream + 1]! & modeMask;
  }

  /** Bytes of units without a name, since the last unit with one. */
  consumed(stream: number): number {
    return this.#words[stream + 1]! >>> consumedShift;
  }

  setMode(stream: number, mode: number, consumed = 0): void {
    this.#words[stream + 1] = mode | (Math.min(consumed, consumedMax) << consumedShift);
  }

  /** The lent buffer, -1 for none. */
  buffer(stream: number): number {
    return this.#words[stream + 2]! - 1;
  }

  setBuffer(stream: number, buffer: number): void {
    this.#words[stream + 2] = buffer + 1;
  }

  /** True when the start of the stream's connection was seen. */
  isStartSeen(stream: number): boolean {
    return (this.#words[baseOf(stream) + Field.flags]! & Flag.handshakeSeen) !== 0;
  }
}

// Streams with a buffer: which bytes it holds, how room is made in it, and what is skipped when a unit does not fit.
//
// A flow has one buffer of 4 KiB (NET-8.6). A hello larger than that continues after the extensions that were read; of
// any other unit the rest is skipped.

const stalledSegmentsMax = 16;
/** First byte of a TLS record with a handshake. */
const handshakeByte = 0x16;

export class BufferedStreams {
  readonly buffers: StreamBuffers;
  readonly #streams: StreamWords;

  /** `onTaken` is called when a stream loses its buffer to another flow; it is not read any further. */
  constructor(streams: StreamWords, buffersMax: number, onTaken: () => void) {
    this.#streams = streams;
    this.buffers = new StreamBuffers(buffersMax, (stream) => {
      streams.setMode(stream, Mode.done);
      streams.setBuffer(stream, -1);
      onTaken();
    });
  }

  /** The stream's buffer, lent now if it has none. The two ends of a DNS lookup over TCP take turns. */
  lend(stream: number): number {
    const lent = this.#streams.buffer(stream);
    if (lent >= 0) return lent;
    const other = otherStream(stream);
    if (this.#streams.buffer(other) >= 0) this.finish(other);
    const buffer = this.buffers.lend(stream);
    this.#streams.setBuffer(stream, buffer);
    return buffer;
  }

  release(stream: number): void {
    const buffer = this.#streams.buffer(stream);
    if (buffer < 0) return;
    this.buffers.release(buffer);
    this.#streams.setBuffer(stream, -1);
  }

  /** Releases the buffer, of which this many bytes are behind the stream. */
  releaseAt(stream: number, read: number): void {
    this.release(stream);
    this.#streams.advance(stream, read);
  }

  /** Ends the reading of a stream. */
  finish(stream: number): void {
    this.release(stream);
    this.#streams.setMode(stream, Mode.done);
  }

  /** Bytes that the unit at the buffer's start needs have come, or the buffer is full. `before`: contiguous bytes before. */
  mayRead(buffer: number, before: number): boolean {
    const { needs, contiguous, read } = this.buffers;
    if (contiguous[buffer] === bufferBytes) return true;
    const wanted = needs[buffer]!;
    if (wanted === -1) return this.buffers.hasLineSince(buffer, before);
    return contiguous[buffer]! - read[buffer]! >= wanted;
  }

  /**
   * True when the gap before this segment may be skipped. A gap in a hello may not: its sender waits for the answer.
   */
  maySkipGap(stream: number, buffer: number, ahead: number): boolean {
    const mode = this.#streams.mode(stream);
    if (this.#isHelloAt(mode, buffer)) return false;
    const isHttp = mode === Mode.request || mode === Mode.chunk || mode === Mode.trailer;
    return ahead >= bufferBytes || (isHttp && this.buffers.stalled[buffer]! > stalledSegmentsMax);
  }

  /**
   * Frees space for data that does not fit, by dropping bytes that are no longer needed. Returns true when some were
   * freed.
   */
  freeSpace(stream: number, buffer: number): boolean {
    if (this.buffers.read[buffer]! > 0) {
      this.makeRoom(stream, buffer);
      return true;
    }
    const mode = this.#streams.mode(stream);
    return this.#isHelloAt(mode, buffer) && this.#resumeHello(stream, buffer, mode);
  }

  /** Moves unread bytes to the buffer's start. A unit that fills the whole buffer is skipped. */
  makeRoom(stream: number, buffer: number): void {
    const read = this.buffers.read[buffer]!;
    if (read === 0) {
      this.#abandonUnit(stream, buffer);
      return;
    }
    this.buffers.compact(buffer);
    this.#streams.advance(stream, read);
  }

  /**
   * Data from before the first segment that was seen, on a connection whose start was not seen: moves the buffer's start
   * back by so many bytes. False when that can not be.
   */
  moveStart(stream: number, shift: number): boolean {
    const buffer = this.#streams.buffer(stream);
    const { read, highest } = this.buffers;
    const isGuess = this.#streams.consumed(stream) === 0 && read[buffer] === 0;
    if (!isGuess || this.#streams.isStartSeen(stream) || highest[buffer]! + shift > bufferBytes) return false;
    this.buffers.shift(buffer, shift);
    this.#streams.advance(stream, -shift);
    return true;
  }

  /** True when the buffer starts with a hello, or with the rest of one. */
  #isHelloAt(mode: number, buffer: number): boolean {
    if (mode === Mode.hello) return true;
    const isStart = mode === Mode.fresh || mode === Mode.lines;
    const { contiguous, data } = this.buffers;
    return isStart && contiguous[buffer]! > 0 && data[buffer * bufferBytes] === handshakeByte;
  }

  /**
   * Skips the rest of a unit larger than 4 KiB. A hello continues after the extensions that were read. A header's host
   * was read before; the next request is found by its form.
   */
  #abandonUnit(stream: number, buffer: number): void {
    const mode = this.#streams.mode(stream);
    const isHello = this.#isHelloAt(mode, buffer);
    if (isHello && this.#resumeHello(stream, buffer, mode)) return;
    this.#streams.setMode(stream, isHello ? Mode.done : Mode.resync);
    this.releaseAt(stream, this.buffers.highest[buffer]!);
  }

  /** Drops the extensions of a hello that were read. Returns false when there are none. */
  #resumeHello(stream: number, buffer: number, mode: number): boolean {
    const { buffers } = this;
    const start = buffer * bufferBytes;
    const contiguous = buffers.contiguous[buffer]!;
    // Without a new contiguous byte the result is the same, however many segments come from far ahead.
    if (buffers.tried[buffer] === contiguous) return false;
    buffers.tried[buffer] = contiguous;
    if (mode === Mode.hello) buffers.loadPoint(buffer, unit.point);
    const answer = readUnit(mode, buffers.data, start, start + contiguous);
    const { distance } = resumePoint;
    if (answer !== unitNeedsMore || distance === 0) return false;
    buffers.savePoint(buffer, resumePoint);
    buffers.read[buffer] = distance;
    buffers.compact(buffer);
    buffers.tried[buffer] = 0;
    buffers.needs[buffer] = Math.max(1, helloNeeds - distance);
    this.#streams.advance(stream, distance);
    this.#streams.setMode(stream, Mode.hello);
    return true;
  }
}
