/**
 * A client's or server's stream as three words of its flow's record: the sequence number that is expected next, the mode
 * with the bytes consumed so far, and the lent buffer. A stream is named by the position of its first word.
 */
import { Field, Flag, flowWords } from '../flows/flow-record.ts';

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
export function otherStream(stream: number): number {
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
