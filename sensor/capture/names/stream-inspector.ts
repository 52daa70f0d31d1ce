/**
 * Reassembles client data and reads it unit by unit until the names of a connection are known.
 *
 * Data that arrives in order is read in the packet, without a copy. Only an incomplete unit, or data after a gap, takes
 * a buffer. A gap between requests that does not close within sixteen further segments is skipped. A connection that
 * loses its buffer is not read any further.
 */
import { readUint16 } from '#common/bytes/index.ts';
import { Field, Flag, flowWords } from '../flows/flow-record.ts';
import { helloNeeds, resumePoint } from './client-hello.ts';
import { looksLikeRequest } from './http-request.ts';
import { bufferBytes, StreamBuffers } from './stream-buffers.ts';
import { Mode, readUnit, unit, unitEnds, unitNeedsMore } from './stream-units.ts';

const stalledSegmentsMax = 16;
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
  readonly #words: Int32Array;
  readonly #sink: StreamSink;
  readonly #buffers: StreamBuffers;

  constructor(words: Int32Array, buffersMax: number, sink: StreamSink) {
    this.#words = words;
    this.#sink = sink;
    this.#buffers = new StreamBuffers(buffersMax, (stream) => {
      this.#words[stream + 1] = Mode.done;
      this.#words[stream + 2] = 0;
      sink.onBufferTaken();
    });
  }

  /** Data of one segment from `side` of the flow at `base`. `sequence` is that of its first byte. */
  onData(base: number, side: number, sequence: number, bytes: Uint8Array, from: number, end: number): void {
    const words = this.#words;
    const stream = base + Field.stream + side * 3;
    const mode = words[stream + 1]! & 0xff;
    if (mode === Mode.done) return;
    if (mode === Mode.resync) {
      this.#resync(base, stream, sequence, bytes, from, end);
      return;
    }
    let ahead = (sequence - words[stream]!) | 0;
    let start = from;
    if (ahead < 0) {
      if (ahead + (end - from) <= 0) {
        if (words[stream + 2] === 0 || !this.#rebase(stream, ahead)) return;
        ahead = 0;
      } else {
        start = from - ahead;
        ahead = 0;
      }
    }
    if (words[stream + 2] === 0 && ahead === 0) {
      this.#readInPlace(base, stream, bytes, start, end);
      return;
    }
    const before = words[stream]!;
    this.#store(base, stream, ahead, bytes, start, end);
    // Data that did not fit into the buffer may fit after some of it was read.
    const isCut = ahead + end - start > bufferBytes;
    if (isCut && words[stream] !== before) this.onData(base, side, sequence, bytes, from, end);
  }

  /** Releases the buffers of a flow that leaves the table. */
  forget(base: number): void {
    this.#release(base + Field.stream);
    this.#release(base + Field.stream + 3);
  }

  /** Sets what the stream of `side` expects and releases its buffer. */
  expect(base: number, side: number, sequence: number, mode: number): void {
    const stream = base + Field.stream + side * 3;
    this.#release(stream);
    this.#words[stream] = sequence;
    this.#words[stream + 1] = mode;
  }

  /** Reads units directly from the packet; an incomplete unit goes into a buffer. */
  #readInPlace(base: number, stream: number, bytes: Uint8Array, from: number, end: number): void {
    let at = from;
    while (at < end) {
      const distance = this.#readOne(base, stream, bytes, at, end);
      if (distance === unitEnds) {
        this.#finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        const sequence = this.#words[stream]!;
        this.#store(base, stream, 0, bytes, at, end, unit.needsLine ? -1 : unit.needs);
        const hasRest = end - at > bufferBytes && this.#words[stream] !== sequence;
        if (hasRest) this.onData(base, stream - base === Field.stream ? 0 : 1, sequence, bytes, at, end);
        return;
      }
      at += distance;
      this.#words[stream] = (this.#words[stream]! + distance) | 0;
      if ((this.#words[stream + 1]! & 0xff) === Mode.resync) {
        this.#words[stream] = (this.#words[stream]! + end - at) | 0;
        return;
      }
    }
  }

  /** Reads one unit, reports its result, and sets the stream's mode when it advances. */
  #readOne(base: number, stream: number, bytes: Uint8Array, at: number, end: number): number {
    const words = this.#words;
    const mode = words[stream + 1]! & 0xff;
    const side = stream - base === Field.stream ? 0 : 1;
    if (mode === Mode.dns) {
      if (end - at < 2) return this.#needsBytes(2);
      const length = readUint16(bytes, at) + 2;
      if (end - at < length && length <= bufferBytes) return this.#needsBytes(length);
      if (end - at >= length) this.#sink.onDnsMessage(base, side, bytes, at + 2, at + length);
      return length;
    }
    if (mode === Mode.hello) this.#buffers.loadPoint(words[stream + 2]! - 1, unit.point);
    const distance = readUnit(mode, bytes, at, end);
    // Read before the callback: `readUnit` leaves the name in the scratch, and the callback may change the stream's
    // mode.
    const nextMode = unit.mode;
    if (unit.isClient) this.#sink.onClient(base, side);
    if (unit.nameLength > 0) this.#sink.onName(base, side, unit.evidence, unit.nameLength);
    if (distance >= 0) {
      const isNaming = mode === Mode.request || mode === Mode.chunk || mode === Mode.trailer;
      const consumed = isNaming ? 0 : (words[stream + 1]! >>> 8) + distance;
      const isSpent = consumed > unnamedBytesMax && nextMode !== Mode.request && nextMode !== Mode.chunk;
      words[stream + 1] = isSpent ? Mode.done : nextMode | (Math.min(consumed, 0xffff) << 8);
      if (isSpent) return unitEnds;
    }
    return distance;
  }

  #needsBytes(count: number): number {
    unit.needs = count;
    unit.needsLine = false;
    return unitNeedsMore;
  }

  /** After a gap or an upgrade only a segment that starts with a request is read. */
  #resync(
    base: number,
    stream: number,
    sequence: number,
    bytes: Uint8Array,
    from: number,
    end: number,
  ): void {
    const words = this.#words;
    if (((sequence - words[stream]!) | 0) < 0) return;
    if (looksLikeRequest(bytes, from, end)) {
      words[stream] = sequence;
      words[stream + 1] = Mode.request;
      this.#readInPlace(base, stream, bytes, from, end);
    } else words[stream] = (sequence + end - from) | 0;
  }

  /**
   * Copies data into the stream's buffer, `ahead` bytes after the expected position, and continues reading if possible.
   */
  #store(
    base: number,
    stream: number,
    ahead: number,
    bytes: Uint8Array,
    from: number,
    end: number,
    needs = 0,
  ): void {
    const sequence = sequenceOf(this.#words, stream, ahead);
    const buffer = this.#words[stream + 2]! !== 0 ? this.#words[stream + 2]! - 1 : this.#lend(stream);
    if (ahead + end - from > bufferBytes && this.#freeSpace(stream, buffer)) {
      this.onData(base, stream - base === Field.stream ? 0 : 1, sequence, bytes, from, end);
      return;
    }
    const before = this.#buffers.contiguous[buffer]!;
    this.#buffers.copy(buffer, ahead, bytes, from, end);
    const contiguous = this.#buffers.contiguous[buffer]!;
    if (needs !== 0) this.#buffers.needs[buffer] = needs;
    else if (contiguous > before) {
      this.#buffers.stalled[buffer] = 0;
      const wanted = this.#buffers.needs[buffer]!;
      const isFull = contiguous === bufferBytes;
      const isEnough =
        wanted === -1
          ? this.#buffers.hasLineSince(buffer, before)
          : contiguous - this.#buffers.read[buffer]! >= wanted;
      if (isEnough || isFull) {
        this.#readBuffer(base, stream, buffer);
        return;
      }
    } else {
      if (end - from >= stallingBytesMin) this.#buffers.stalled[buffer]! += 1;
      if (this.#maySkipGap(stream, buffer, ahead)) {
        this.#giveUpGap(base, stream, sequence, bytes, from, end);
        return;
      }
    }
    if (this.#buffers.contiguous[buffer] === bufferBytes) this.#makeRoom(stream, buffer);
  }

  /**
   * True when the gap before this segment may be skipped. A gap in a hello may not: its sender waits for the answer.
   */
  #maySkipGap(stream: number, buffer: number, ahead: number): boolean {
    const mode = this.#words[stream + 1]! & 0xff;
    const isFar = ahead >= bufferBytes;
    if (this.#isHelloAt(mode, buffer)) return false;
    const isHttp = mode === Mode.request || mode === Mode.chunk || mode === Mode.trailer;
    return isFar || (isHttp && this.#buffers.stalled[buffer]! > stalledSegmentsMax);
  }

  /** Reads units from a buffer, from the last position on. */
  #readBuffer(base: number, stream: number, buffer: number): void {
    const dataBase = buffer * bufferBytes;
    for (;;) {
      const read = this.#buffers.read[buffer]!;
      const contiguous = this.#buffers.contiguous[buffer]!;
      if (read >= contiguous) {
        const isOver = read >= this.#buffers.highest[buffer]!;
        if (isOver && (this.#words[stream + 1]! & 0xff) !== Mode.hello) this.#releaseAt(stream, read);
        return;
      }
      const distance = this.#readOne(
        base,
        stream,
        this.#buffers.data,
        dataBase + read,
        dataBase + contiguous,
      );
      if (distance === unitEnds) {
        this.#finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        this.#buffers.needs[buffer] = unit.needsLine ? -1 : unit.needs;
        if (contiguous === bufferBytes) this.#makeRoom(stream, buffer);
        return;
      }
      this.#buffers.needs[buffer] = 0;
      this.#buffers.read[buffer] = read + distance;
      const isResync = (this.#words[stream + 1]! & 0xff) === Mode.resync;
      if (isResync || read + distance >= bufferBytes) {
        this.#releaseAt(stream, isResync ? this.#buffers.highest[buffer]! : read + distance);
        return;
      }
    }
  }

  /**
   * Frees space for data that does not fit, by dropping bytes that are no longer needed. Returns true when some were
   * freed.
   */
  #freeSpace(stream: number, buffer: number): boolean {
    const mode = this.#words[stream + 1]! & 0xff;
    if (this.#buffers.read[buffer]! > 0) {
      this.#makeRoom(stream, buffer);
      return true;
    }
    return this.#isHelloAt(mode, buffer) && this.#resumeHello(stream, buffer, mode);
  }

  /** True when the buffer starts with a hello, or with the rest of one. */
  #isHelloAt(mode: number, buffer: number): boolean {
    if (mode === Mode.hello) return true;
    const isStart = mode === Mode.fresh || mode === Mode.lines;
    return (
      isStart && this.#buffers.contiguous[buffer]! > 0 && this.#buffers.data[buffer * bufferBytes] === 0x16
    );
  }

  /** Moves unread bytes to the buffer's start. A unit that fills the whole buffer is skipped. */
  #makeRoom(stream: number, buffer: number): void {
    const read = this.#buffers.read[buffer]!;
    if (read === 0) {
      this.#abandonUnit(stream, buffer);
      return;
    }
    this.#buffers.compact(buffer);
    this.#words[stream] = (this.#words[stream]! + read) | 0;
  }

  /**
   * Skips the rest of a unit larger than 4 KiB. A hello continues after the extensions that were read. A header's host
   * was read before; the next request is found by its form.
   */
  #abandonUnit(stream: number, buffer: number): void {
    const mode = this.#words[stream + 1]! & 0xff;
    const isHello = this.#isHelloAt(mode, buffer);
    if (isHello && this.#resumeHello(stream, buffer, mode)) return;
    const next = isHello ? Mode.done : Mode.resync;
    const read = this.#buffers.highest[buffer]!;
    this.#words[stream + 1] = next;
    this.#releaseAt(stream, read);
  }

  #resumeHello(stream: number, buffer: number, mode: number): boolean {
    const buffers = this.#buffers;
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
    this.#words[stream] = (this.#words[stream]! + distance) | 0;
    this.#words[stream + 1] = Mode.hello;
    return true;
  }

  /** Reading continues with the segment after the gap if it starts like a request. */
  #giveUpGap(
    base: number,
    stream: number,
    sequence: number,
    bytes: Uint8Array,
    from: number,
    end: number,
  ): void {
    this.#release(stream);
    this.#words[stream] = sequence;
    this.#words[stream + 1] = Mode.resync;
    this.#resync(base, stream, sequence, bytes, from, end);
  }

  /**
   * Data from before the first segment that was seen, on a connection whose start was not seen: moves the buffer's
   * start.
   */
  #rebase(stream: number, ahead: number): boolean {
    const buffer = this.#words[stream + 2]! - 1;
    const shift = -ahead;
    const isGuess = this.#words[stream + 1]! >>> 8 === 0 && this.#buffers.read[buffer] === 0;
    const flags = this.#words[stream - (stream % flowWords) + Field.flags]!;
    const wasSynSeen = (flags & Flag.handshakeSeen) !== 0;
    if (!isGuess || wasSynSeen || this.#buffers.highest[buffer]! + shift > bufferBytes) return false;
    this.#buffers.shift(buffer, shift);
    this.#words[stream] = (this.#words[stream]! - shift) | 0;
    return true;
  }

  #lend(stream: number): number {
    // A flow has one buffer of 4 KiB (NET-8.6). The two ends of a DNS lookup over TCP take turns.
    const isFirstSide = (stream - Field.stream) % flowWords === 0;
    const other = isFirstSide ? stream + 3 : stream - 3;
    if (this.#words[other + 2] !== 0) this.#finish(other);
    const buffer = this.#buffers.lend(stream);
    this.#words[stream + 2] = buffer + 1;
    return buffer;
  }

  #finish(stream: number): void {
    this.#release(stream);
    this.#words[stream + 1] = Mode.done;
  }

  #releaseAt(stream: number, read: number): void {
    this.#release(stream);
    this.#words[stream] = (this.#words[stream]! + read) | 0;
  }

  #release(stream: number): void {
    const buffer = this.#words[stream + 2]! - 1;
    if (buffer < 0) return;
    this.#buffers.release(buffer);
    this.#words[stream + 2] = 0;
  }
}

function sequenceOf(words: Int32Array, stream: number, ahead: number): number {
  return (words[stream]! + ahead) | 0;
}
