/**
 * Remembers in fixed memory which ends of which flows have sent, for 20 to 40 seconds of capture time.
 *
 * A byte for each keyed hash of a flow: for each end whether it sent, and whether it answered an opening, now and in the 20
 * seconds before. So a packet reads and writes one byte. A one-way packet looks two-way with the probability of a set bit,
 * so the caller keeps floods out; a two-way packet never looks one-way because of others.
 */
import { mixHash } from '#sensor/capture/index.ts';

/** The upper bits of a product are the place: 2 MiB. */
const placeBits = 21;
const places = 1 << placeBits;
const secondsPerTurn = 20;

/** Bits of the lower end; those of the higher end are four higher. The second bit of each pair is that of the odd turns. */
export const Mark = { sent: 1, anySent: 3, answered: 4, anyAnswered: 12 } as const;

export class FlowMemory {
  readonly marks = new Uint8Array(places);
  /** The same bytes, to clear them. */
  readonly #words = new Int32Array(this.marks.buffer);
  readonly key: readonly [number, number];
  #turnedAt = 0;
  /** 0 or 1: which bit of each pair is set now. */
  odd = 0;

  constructor(key: readonly [number, number]) {
    this.key = key;
  }

  /** Sets marks of the end that sent, at a flow's place. */
  note(place: number, mark: number, side: number): void {
    this.marks[place]! |= mark << (this.odd + side * 4);
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

/** The hash of one end of a flow. */
export function hashEnd(last: number, port: number, key: number): number {
  let hash = Math.imul(last ^ key, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15) ^ port, 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

/** All words of an IPv6 address, for the same. */
export function foldAddress(words: Int32Array, at: number): number {
  return mixHash(mixHash(mixHash(words[at]!, words[at + 1]!), words[at + 2]!), words[at + 3]!);
}

/** The place of a flow, the same for both directions. */
export function placeOf(one: number, other: number, protocol: number, key: number): number {
  return Math.imul(((one + other) | 0) ^ protocol ^ key, 0xc2b2ae35) >>> (32 - placeBits);
}

/** Which end of a flow sent: 1 when its hash is higher than the other one's. Without a branch, because it is as a coin is. */
export function sideOf(one: number, other: number): number {
  return ((other >> 1) - (one >> 1)) >>> 31;
}

/** The marks of one end. */
export function marksOfEnd(marks: number, side: number): number {
  return (marks >> (side * 4)) & 15;
}
