/**
 * Puts client data back into order and reads it unit by unit until the names on a connection are known.
 *
 * Data that arrives in order is read where it lies in the packet and copied nowhere. Only a unit that is incomplete,
 * or data ahead of a gap, borrows a buffer of 4 KiB; the first copy of a byte wins. A gap between requests that does
 * not close within sixteen further segments is given up, and reading goes on behind it. Buffers are few: when all are lent, the one
 * lent longest ago is taken back and its connection is read no further.
 */
import { readUint16 } from '#common/bytes/index.ts';
import { Field, Flag, flowWords } from './flow-table.ts';
import { looksLikeRequest } from './http-request.ts';
import { Mode, readUnit, unit, unitEnds, unitNeedsMore } from './stream-units.ts';

const bufferBytes = 4096;
const mapBytes = bufferBytes / 8;
const stalledSegmentsMax = 16;
/** Client data read without finding a name before a connection is left alone. */
const unnamedBytesMax = 16_384;

/** What the inspector tells its owner. */
export interface StreamSink {
  /** This side sent a hello or a request. */
  onClient(base: number, side: number): void;
  /** A name was read; it lies in the name scratch. */
  onName(base: number, side: number, evidence: number, length: number): void;
  /** A whole DNS message was read. */
  onDnsMessage(base: number, side: number, bytes: Uint8Array, from: number, end: number): void;
  /** A buffer was taken back before its connection had a name. */
  onBufferTaken(): void;
}

export class StreamInspector {
  readonly #words: Int32Array;
  readonly #sink: StreamSink;
  readonly #buffersMax: number;
  readonly #data: Uint8Array;
  readonly #map: Uint8Array;
  /** For each buffer: its flow's stream field, or -1 when it is not lent. */
  readonly #owner: Int32Array;
  /** Contiguous bytes from the buffer's start, how many of them were read, the end of what arrived, stalls. */
  readonly #contiguous: Int32Array;
  readonly #read: Int32Array;
  readonly #highest: Int32Array;
  readonly #stalled: Int32Array;
  readonly #needs: Int32Array;
  #hand = 0;

  constructor(words: Int32Array, buffersMax: number, sink: StreamSink) {
    this.#words = words;
    this.#sink = sink;
    this.#buffersMax = buffersMax;
    this.#data = new Uint8Array(buffersMax * bufferBytes);
    this.#map = new Uint8Array(buffersMax * mapBytes);
    this.#owner = new Int32Array(buffersMax).fill(-1);
    this.#contiguous = new Int32Array(buffersMax);
    this.#read = new Int32Array(buffersMax);
    this.#highest = new Int32Array(buffersMax);
    this.#stalled = new Int32Array(buffersMax);
    this.#needs = new Int32Array(buffersMax);
  }

  /** One segment's data from `side` of the flow at `base`. `sequence` is that of its first byte. */
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
    // What did not fit into the buffer may fit now that some of it was read.
    const isCut = ahead + end - start > bufferBytes;
    if (isCut && words[stream] !== before) this.onData(base, side, sequence, bytes, from, end);
  }

  /** Gives back the buffers of a flow that leaves. */
  forget(base: number): void {
    this.#release(base + Field.stream);
    this.#release(base + Field.stream + 3);
  }

  /** Sets what the stream of `side` expects; any buffer is given back. */
  expect(base: number, side: number, sequence: number, mode: number): void {
    const stream = base + Field.stream + side * 3;
    this.#release(stream);
    this.#words[stream] = sequence;
    this.#words[stream + 1] = mode;
  }

  /** Reads units straight from the packet; what is incomplete goes into a buffer. */
  #readInPlace(base: number, stream: number, bytes: Uint8Array, from: number, end: number): void {
    let at = from;
    while (at < end) {
      const distance = this.#readOne(base, stream, bytes, at, end);
      if (distance === unitEnds) {
        this.#finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        this.#store(base, stream, 0, bytes, at, end, unit.needsLine ? -1 : unit.needs);
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

  /** Reads one unit, passes on what it found, and sets the stream's mode when it advances. */
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
    const distance = readUnit(mode, bytes, at, end);
    // `readUnit` leaves the name in the scratch; whoever takes it may change the stream's mode.
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

  /** After a gap or an upgrade: only a segment that starts with a request is read. */
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

  /** Copies data into the stream's buffer, `ahead` bytes after the expected one, and reads on where that helps. */
  #store(
    base: number,
    stream: number,
    ahead: number,
    bytes: Uint8Array,
    from: number,
    end: number,
    needs = 0,
  ): void {
    const buffer = this.#words[stream + 2]! !== 0 ? this.#words[stream + 2]! - 1 : this.#lend(stream);
    const before = this.#contiguous[buffer]!;
    const hasLine = this.#copy(buffer, ahead, bytes, from, end);
    const contiguous = this.#contiguous[buffer]!;
    if (needs !== 0) this.#needs[buffer] = needs;
    else if (contiguous > before) {
      this.#stalled[buffer] = 0;
      const wanted = this.#needs[buffer]!;
      const isFull = contiguous === bufferBytes;
      const isAfterGap =
        ahead > before || this.#highest[buffer]! > contiguous || contiguous > ahead + (end - from);
      const isEnough = wanted === -1 ? hasLine || isAfterGap : contiguous - this.#read[buffer]! >= wanted;
      if (isEnough || isFull) {
        this.#readBuffer(base, stream, buffer);
        return;
      }
    } else {
      this.#stalled[buffer]! += 1;
      const isBetweenRequests = (this.#words[stream + 1]! & 0xff) !== Mode.fresh;
      if ((isBetweenRequests && this.#stalled[buffer]! > stalledSegmentsMax) || ahead >= bufferBytes) {
        this.#giveUpGap(base, stream, sequenceOf(this.#words, stream, ahead), bytes, from, end);
        return;
      }
    }
    if (this.#contiguous[buffer] === bufferBytes) this.#makeRoom(stream, buffer);
  }

  /** Copies what is not there yet; true when a line feed was among it. */
  #copy(buffer: number, ahead: number, bytes: Uint8Array, from: number, end: number): boolean {
    const data = this.#data;
    const map = this.#map;
    const dataBase = buffer * bufferBytes;
    const mapBase = buffer * mapBytes;
    const stop = Math.min(bufferBytes, ahead + end - from);
    let hasLine = false;
    for (let at = ahead; at < stop; at += 1) {
      const cell = mapBase + (at >> 3);
      const bit = 1 << (at & 7);
      if ((map[cell]! & bit) !== 0) continue;
      map[cell]! |= bit;
      const byte = bytes[from + at - ahead]!;
      data[dataBase + at] = byte;
      if (byte === 0x0a) hasLine = true;
    }
    if (stop > this.#highest[buffer]!) this.#highest[buffer] = stop;
    let contiguous = this.#contiguous[buffer]!;
    if (ahead <= contiguous && stop > contiguous) contiguous = stop;
    const highest = this.#highest[buffer]!;
    while (contiguous < highest && (map[mapBase + (contiguous >> 3)]! & (1 << (contiguous & 7))) !== 0)
      contiguous += 1;
    this.#contiguous[buffer] = contiguous;
    return hasLine;
  }

  /** Reads units from a buffer, from where reading stopped. */
  #readBuffer(base: number, stream: number, buffer: number): void {
    const dataBase = buffer * bufferBytes;
    for (;;) {
      const read = this.#read[buffer]!;
      const contiguous = this.#contiguous[buffer]!;
      if (read >= contiguous) {
        if (read >= this.#highest[buffer]!) this.#releaseAt(stream, read);
        return;
      }
      const distance = this.#readOne(base, stream, this.#data, dataBase + read, dataBase + contiguous);
      if (distance === unitEnds) {
        this.#finish(stream);
        return;
      }
      if (distance === unitNeedsMore) {
        this.#needs[buffer] = unit.needsLine ? -1 : unit.needs;
        if (contiguous === bufferBytes) this.#makeRoom(stream, buffer);
        return;
      }
      this.#needs[buffer] = 0;
      this.#read[buffer] = read + distance;
      const isResync = (this.#words[stream + 1]! & 0xff) === Mode.resync;
      if (isResync || read + distance >= bufferBytes) {
        this.#releaseAt(stream, isResync ? this.#highest[buffer]! : read + distance);
        return;
      }
    }
  }

  /** Moves what was not read yet to the buffer's start; a unit that fills the whole buffer is given up. */
  #makeRoom(stream: number, buffer: number): void {
    const read = this.#read[buffer]!;
    if (read === 0) {
      this.#abandonUnit(stream, buffer);
      return;
    }
    const dataBase = buffer * bufferBytes;
    this.#data.copyWithin(dataBase, dataBase + read, dataBase + bufferBytes);
    const left = this.#contiguous[buffer]! - read;
    this.#map.fill(0, buffer * mapBytes, (buffer + 1) * mapBytes);
    for (let at = 0; at < left; at += 1) this.#map[buffer * mapBytes + (at >> 3)]! |= 1 << (at & 7);
    this.#contiguous[buffer] = left;
    this.#highest[buffer] = left;
    this.#read[buffer] = 0;
    this.#words[stream] = (this.#words[stream]! + read) | 0;
  }

  /** A header of more than 4 KiB: its host was read long ago, what follows is found by looking. */
  #abandonUnit(stream: number, buffer: number): void {
    const mode = this.#words[stream + 1]! & 0xff;
    const next = mode === Mode.fresh && this.#data[buffer * bufferBytes] === 0x16 ? Mode.done : Mode.resync;
    const read = this.#highest[buffer]!;
    this.#words[stream + 1] = next;
    this.#releaseAt(stream, read);
  }

  /** Reading goes on with the segment behind the gap, if its start looks like one. */
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

  /** Earlier data than the first that was seen, on a connection whose start was not: the buffer's start moves. */
  #rebase(stream: number, ahead: number): boolean {
    const buffer = this.#words[stream + 2]! - 1;
    const shift = -ahead;
    const isGuess = this.#words[stream + 1]! >>> 8 === 0 && this.#read[buffer] === 0;
    const flags = this.#words[stream - (stream % flowWords) + Field.flags]!;
    const wasSynSeen = (flags & Flag.handshakeSeen) !== 0;
    if (!isGuess || wasSynSeen || this.#highest[buffer]! + shift > bufferBytes) return false;
    const dataBase = buffer * bufferBytes;
    this.#data.copyWithin(dataBase + shift, dataBase, dataBase + bufferBytes - shift);
    const held = this.#map.slice(buffer * mapBytes, (buffer + 1) * mapBytes);
    this.#map.fill(0, buffer * mapBytes, (buffer + 1) * mapBytes);
    for (let at = 0; at + shift < bufferBytes; at += 1) {
      if ((held[at >> 3]! & (1 << (at & 7))) === 0) continue;
      this.#map[buffer * mapBytes + ((at + shift) >> 3)]! |= 1 << ((at + shift) & 7);
    }
    this.#contiguous[buffer] = 0;
    this.#highest[buffer]! += shift;
    this.#needs[buffer] = 0;
    this.#words[stream] = (this.#words[stream]! - shift) | 0;
    return true;
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
    this.#owner[buffer] = -1;
    this.#words[stream + 2] = 0;
  }

  #lend(stream: number): number {
    for (let i = 0; i < 8; i += 1) {
      const tried = (this.#hand + i) % this.#buffersMax;
      if (this.#owner[tried] === -1) return this.#take(stream, tried);
    }
    const buffer = this.#hand % this.#buffersMax;
    if (this.#owner[buffer] !== -1) {
      this.#finish(this.#owner[buffer]!);
      this.#sink.onBufferTaken();
    }
    return this.#take(stream, buffer);
  }

  #take(stream: number, buffer: number): number {
    this.#hand = (buffer + 1) % this.#buffersMax;
    this.#owner[buffer] = stream;
    this.#words[stream + 2] = buffer + 1;
    this.#map.fill(0, buffer * mapBytes, (buffer + 1) * mapBytes);
    this.#contiguous[buffer] = this.#read[buffer] = this.#highest[buffer] = 0;
    this.#stalled[buffer] = this.#needs[buffer] = 0;
    return buffer;
  }
}

function sequenceOf(words: Int32Array, stream: number, ahead: number): number {
  return (words[stream]! + ahead) | 0;
}
