/**
 * Reassembles client data and reads it unit by unit until the names of a connection are known.
 *
 * Data that arrives in order is read in the packet, without a copy. Only an incomplete unit, or data after a gap, takes
 * a buffer. A gap between requests that does not close within sixteen further segments is skipped. A connection that
 * loses its buffer is not read any further.
 */
import { readUint16 } from '#common/bytes/index.ts';
import { looksLikeRequest } from './http-request.ts';
import { BufferedStreams, baseOf, bufferBytes, StreamWords, sideOf, streamOf } from './stream-buffers.ts';
import { Mode, readUnit, unit, unitEnds, unitNeedsMore } from './stream-units.ts';

/** Shorter segments are deliberate small segments, not traffic after a loss. */
const stallingBytesMin = 64;
/** Client data that is read without finding a name before the connection is skipped. */
const unnamedBytesMax = 16_384;

/** Callbacks of the inspector. */
export interface StreamSink {
  /** This side sent a hello or a request. */
  onClient(base: number, side: number): void;
  /** A name was read; it is in the name scratch. */
  onName(base: number, side: number, evidence: number, length: number): void;
  /** A whole DNS message was read. */
  onDnsMessage(base: number, side: number, bytes: Uint8Array, from: number, end: number): void;
  /** A connection lost its buffer before it had a name. */
  onBufferTaken(): void;
}

export class StreamInspector {
  readonly #streams: StreamWords;
  readonly #buffered: BufferedStreams;
  readonly #sink: StreamSink;

  constructor(words: Int32Array, buffersMax: number, sink: StreamSink) {
    this.#streams = new StreamWords(words);
    this.#buffered = new BufferedStreams(this.#streams, buffersMax, () => sink.onBufferTaken());
    this.#sink = sink;
  }

  /** Data of one segment from `side` of the flow at `base`. `sequence` is that of its first byte. */
  onData(base: number, side: number, sequence: number, bytes: Uint8Array, from: number, end: number): void {
    this.#take(streamOf(base, side), sequence, bytes, from, end);
  }

  /** Releases the buffers of a flow that leaves the table. */
  forget(base: number): void {
    this.#buffered.release(streamOf(base, 0));
    this.#buffered.release(streamOf(base, 1));
  }

  /** Sets what the stream of `side` expects and releases its buffer. */
  expect(base: number, side: number, sequence: number, mode: number): void {
    const stream = streamOf(base, side);
    this.#buffered.release(stream);
    this.#streams.setExpected(stream, sequence);
    this.#streams.setMode(stream, mode);
  }

  /** Reads a segment in the packet, or puts it into the stream's buffer. */
  #take(stream: number, sequence: number, bytes: Uint8Array, from: number, end: number): void {
    const mode = this.#streams.mode(stream);
    if (mode === Mode.done) return;
    if (mode === Mode.resync) {
      this.#resync(stream, sequence, bytes, from, end);
      return;
    }
    const hasBuffer = this.#streams.buffer(stream) >= 0;
    let ahead = this.#streams.aheadBy(stream, sequence);
    let start = from;
    if (ahead < 0) {
      const isKnown = ahead + (end - from) <= 0;
      if (isKnown && !(hasBuffer && this.#buffered.moveStart(stream, -ahead))) return;
      // The first bytes were read before.
      if (!isKnown) start = from - ahead;
      ahead = 0;
    }
    if (!hasBuffer && ahead === 0) {
      this.#readInPlace(stream, bytes, start, end);
      return;
    }
    const before = this.#streams.expected(stream);
    this.#store(stream, ahead, bytes, start, end, 0);
    // Data that did not fit into the buffer may fit after some of it was read.
    const isCut = ahead + end - start > bufferBytes;
    if (isCut && this.#streams.expected(stream) !== before) this.#take(stream, sequence, bytes, from, end);
  }

  /** Reads units directly from the packet; an incomplete unit goes into a buffer. */
  #readInPlace(stream: number, bytes: Uint8Array, from: number, end: number): void {
    const streams = this.#streams;
    let at = from;
    while (at < end) {
      const distance = this.#readOne(stream, bytes, at, end);
      if (distance === unitEnds) {
        this.#buffered.finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        this.#storeIncomplete(stream, bytes, at, end);
        return;
      }
      at += distance;
      streams.advance(stream, distance);
      if (streams.mode(stream) === Mode.resync) {
        streams.advance(stream, end - at);
        return;
      }
    }
  }

  /** Keeps the start of a unit. What the buffer had no room for is taken again when some of it was read. */
  #storeIncomplete(stream: number, bytes: Uint8Array, at: number, end: number): void {
    const sequence = this.#streams.expected(stream);
    this.#store(stream, 0, bytes, at, end, unit.needsLine ? -1 : unit.needs);
    const hasRest = end - at > bufferBytes && this.#streams.expected(stream) !== sequence;
    if (hasRest) this.#take(stream, sequence, bytes, at, end);
  }

  /** Reads one unit, reports its result, and sets the stream's mode when it advances. */
  #readOne(stream: number, bytes: Uint8Array, at: number, end: number): number {
    const mode = this.#streams.mode(stream);
    if (mode === Mode.dns) return this.#readDnsMessage(stream, bytes, at, end);
    if (mode === Mode.hello) this.#buffered.buffers.loadPoint(this.#streams.buffer(stream), unit.point);
    const distance = readUnit(mode, bytes, at, end);
    // Read before the callback: `readUnit` leaves the name in the scratch, and the callback may change the stream's
    // mode.
    const nextMode = unit.mode;
    if (unit.isClient) this.#sink.onClient(baseOf(stream), sideOf(stream));
    if (unit.nameLength > 0)
      this.#sink.onName(baseOf(stream), sideOf(stream), unit.evidence, unit.nameLength);
    return distance < 0 ? distance : this.#finishUnit(stream, mode, nextMode, distance);
  }

  /** Sets the next mode. A connection that has sent much without a name is not read any further. */
  #finishUnit(stream: number, mode: number, nextMode: number, distance: number): number {
    const isNaming = mode === Mode.request || mode === Mode.chunk || mode === Mode.trailer;
    const consumed = isNaming ? 0 : this.#streams.consumed(stream) + distance;
    const isSpent = consumed > unnamedBytesMax && nextMode !== Mode.request && nextMode !== Mode.chunk;
    if (isSpent) {
      this.#streams.setMode(stream, Mode.done);
      return unitEnds;
    }
    this.#streams.setMode(stream, nextMode, consumed);
    return distance;
  }

  /** Two bytes of length and the message; one that is larger than a buffer is skipped unless it is in the packet. */
  #readDnsMessage(stream: number, bytes: Uint8Array, at: number, end: number): number {
    if (end - at < 2) return needsBytes(2);
    const length = readUint16(bytes, at) + 2;
    if (end - at < length && length <= bufferBytes) return needsBytes(length);
    if (end - at >= length)
      this.#sink.onDnsMessage(baseOf(stream), sideOf(stream), bytes, at + 2, at + length);
    return length;
  }

  /** After a gap or an upgrade only a segment that starts with a request is read. */
  #resync(stream: number, sequence: number, bytes: Uint8Array, from: number, end: number): void {
    const streams = this.#streams;
    if (streams.aheadBy(stream, sequence) < 0) return;
    if (looksLikeRequest(bytes, from, end)) {
      streams.setExpected(stream, sequence);
      streams.setMode(stream, Mode.request);
      this.#readInPlace(stream, bytes, from, end);
    } else streams.setExpected(stream, (sequence + end - from) | 0);
  }

  /**
   * Copies data into the stream's buffer, `ahead` bytes after the expected position, and continues reading if possible.
   * `needs`: what the unit that starts there needs, as in `StreamBuffers`; 0 when that is not known now.
   */
  #store(stream: number, ahead: number, bytes: Uint8Array, from: number, end: number, needs: number): void {
    const { buffers } = this.#buffered;
    const sequence = (this.#streams.expected(stream) + ahead) | 0;
    const buffer = this.#buffered.lend(stream);
    if (ahead + end - from > bufferBytes && this.#buffered.freeSpace(stream, buffer)) {
      this.#take(stream, sequence, bytes, from, end);
      return;
    }
    const before = buffers.contiguous[buffer]!;
    buffers.copy(buffer, ahead, bytes, from, end);
    if (needs !== 0) buffers.needs[buffer] = needs;
    else if (buffers.contiguous[buffer]! > before) {
      buffers.stalled[buffer] = 0;
      if (this.#buffered.mayRead(buffer, before)) {
        this.#readBuffer(stream, buffer);
        return;
      }
    } else {
      if (end - from >= stallingBytesMin) buffers.stalled[buffer]! += 1;
      if (this.#buffered.maySkipGap(stream, buffer, ahead)) {
        this.#skipGap(stream, sequence, bytes, from, end);
        return;
      }
    }
    if (buffers.contiguous[buffer] === bufferBytes) this.#buffered.makeRoom(stream, buffer);
  }

  /** Reading continues with the segment after the gap if it starts like a request. */
  #skipGap(stream: number, sequence: number, bytes: Uint8Array, from: number, end: number): void {
    this.#buffered.release(stream);
    this.#streams.setExpected(stream, sequence);
    this.#streams.setMode(stream, Mode.resync);
    this.#resync(stream, sequence, bytes, from, end);
  }

  /** Reads units from a buffer, from the last position on. */
  #readBuffer(stream: number, buffer: number): void {
    const { buffers } = this.#buffered;
    const dataBase = buffer * bufferBytes;
    for (;;) {
      const read = buffers.read[buffer]!;
      const contiguous = buffers.contiguous[buffer]!;
      if (read >= contiguous) {
        const isOver = read >= buffers.highest[buffer]!;
        if (isOver && this.#streams.mode(stream) !== Mode.hello) this.#buffered.releaseAt(stream, read);
        return;
      }
      const distance = this.#readOne(stream, buffers.data, dataBase + read, dataBase + contiguous);
      if (distance === unitEnds) {
        this.#buffered.finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        buffers.needs[buffer] = unit.needsLine ? -1 : unit.needs;
        if (contiguous === bufferBytes) this.#buffered.makeRoom(stream, buffer);
        return;
      }
      buffers.needs[buffer] = 0;
      buffers.read[buffer] = read + distance;
      const isResync = this.#streams.mode(stream) === Mode.resync;
      if (isResync || read + distance >= bufferBytes) {
        this.#buffered.releaseAt(stream, isResync ? buffers.highest[buffer]! : read + distance);
        return;
      }
    }
  }
}

function needsBytes(count: number): number {
  unit.needs = count;
  unit.needsLine = false;
  return unitNeedsMore;
}
