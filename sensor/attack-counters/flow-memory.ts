/**
 * Remembers in fixed memory which ends of which flows have sent, for 20 to 40 seconds of capture time.
 *
 * A byte for each keyed hash of a flow: for each end whether it sent, and whether it answered an opening, now and in the 20
 * seconds before. So a packet reads and writes one byte. A one-way packet looks two-way with the probability of a set bit,
 * so the caller keeps floods out; a two-way packet never looks one-way because of others.
 */
import { hashRecord } from '#sensor/capture/index.ts';
import { batchMax, Entry, entryWords, kindShift, type PacketBatch } from './packet-batch.ts';
import { isRemembered } from './packet-kind.ts';

/** Bytes, a power of two: 2 MiB. */
const places = 1 << 21;
const secondsPerTurn = 20;

/** Bits of the lower end; those of the higher end are four higher. The second bit of each pair is that of the odd turns. */
export const Mark = { sent: 1, anySent: 3, answered: 4, anyAnswered: 12 } as const;

export class FlowMemory {
  readonly marks = new Uint8Array(places);
  /** The same bytes, to clear them. */
  readonly #words = new Int32Array(this.marks.buffer);
  readonly #key: readonly [number, number];
  /** The place of each entry of a batch. */
  readonly places = new Int32Array(batchMax);
  #turnedAt = 0;
  /** 0 or 1: which bit of each pair is set now. */
  odd = 0;
  /** All marks of the last batch, so that reading them is not left out as useless. */
  read = 0;

  constructor(key: readonly [number, number]) {
    this.#key = key;
  }

  /**
   * Finds the flows of a batch; the other methods are about its entries, by their number. All their bytes are read, so that
   * the waits for memory overlap.
   */
  find({ words, count }: PacketBatch): void {
    const marks = this.marks;
    const found = this.places;
    const [key0, key1] = this.#key;
    let read = 0;
    for (let entry = 0; entry < count; entry += 1) {
      if (isRemembered[words[entry * entryWords + Entry.flags]! >> kindShift] === 0) continue;
      const place = hashRecord(words, entry * entryWords, key0, key1) & (places - 1);
      found[entry] = place;
      read |= marks[place]!;
    }
    this.read = read;
  }

  /** The marks of an entry's flow. */
  marksOf(entry: number): number {
    return this.marks[this.places[entry]!]!;
  }

  /** Sets marks of the end that sent the entry. */
  note(entry: number, mark: number, side: number): void {
    this.marks[this.places[entry]!]! |= mark << (this.odd + side * 4);
  }

  /** Forgets what is older than two turns. Called at the start of a second. */
  turn(second: number): void {
    const age = second - this.#turnedAt;
    if (age < secondsPerTurn) return;
    this.#turnedAt = second;
    this.odd = 1 - this.odd;
    const words = this.#words;
    if (age >= 2 * secondsPerTurn) {
      words.fill(0);
      return;
    }
    // Of each pair the bit of the turn before stays.
    const kept = this.odd === 1 ? 0x55555555 : 0xaaaaaaaa | 0;
    for (let i = 0; i < words.length; i += 1) words[i] = words[i]! & kept;
  }
}

/** The marks of one end. */
export function marksOfEnd(marks: number, side: number): number {
  return (marks >> (side * 4)) & 15;
}
