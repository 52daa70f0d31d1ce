/**
 * Streams with a buffer: which bytes it holds, how room is made in it, and what is skipped when a unit does not fit.
 *
 * A flow has one buffer of 4 KiB (NET-8.6). A hello larger than that continues after the extensions that were read; of
 * any other unit the rest is skipped.
 */
import { helloNeeds, resumePoint } from './client-hello.ts';
import { bufferBytes, StreamBuffers } from './stream-buffers.ts';
import { Mode, readUnit, unit, unitNeedsMore } from './stream-units.ts';
import { otherStream, type StreamWords } from './stream-words.ts';

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
