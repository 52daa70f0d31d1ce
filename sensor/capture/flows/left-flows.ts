/**
 * Remembers flows of which both ends had sent and that had to make room for others, for 20 to 40 seconds of capture time: a
 * flow that goes on gets a new record that knows it.
 *
 * A bit for each keyed hash of a flow, now and in the 20 seconds before. A flow that never left looks as if it had, with the
 * probability of a set bit; one that left is always known.
 */
import { hashRecord } from './flow-hash.ts';
import { Field, Flag, isClosed, isExchange } from './flow-record.ts';

const placeBits = 21;
const secondsPerTurn = 20;
const rememberedSeconds = 2 * secondsPerTurn;
const bothSaid = Flag.said * 3;

export class LeftFlows {
  #now = new Int32Array((1 << placeBits) / 32);
  #before = new Int32Array((1 << placeBits) / 32);
  #nowCount = 0;
  #beforeCount = 0;
  #turnedAt = 0;
  readonly #key0: number;
  readonly #key1: number;

  constructor(key: readonly [number, number]) {
    this.#key0 = key[0] ^ 0x2545f491;
    this.#key1 = key[1];
  }

  /** The flow at `base` leaves the table at this second. Finished flows need not be remembered. */
  note(words: Int32Array, base: number, second: number): void {
    const flags = words[base + Field.flags]!;
    if ((flags & bothSaid) !== bothSaid || isClosed(flags) || isExchange(flags)) return;
    if (second - words[base + Field.lastSeen]! > rememberedSeconds) return;
    this.#turn(second);
    const place = this.#placeOf(words, base);
    this.#now[place >>> 5]! |= 1 << (place & 31);
    this.#nowCount += 1;
  }

  /** What is known of a new flow at `base`, as flags. */
  recall(words: Int32Array, base: number, second: number): number {
    if (this.#nowCount + this.#beforeCount === 0) return 0;
    this.#turn(second);
    const place = this.#placeOf(words, base);
    const bits = this.#now[place >>> 5]! | this.#before[place >>> 5]!;
    return ((bits >>> (place & 31)) & 1) === 0 ? 0 : bothSaid;
  }

  #turn(second: number): void {
    const age = second - this.#turnedAt;
    if (age >= 0 && age < secondsPerTurn) return;
    this.#turnedAt = second;
    const oldest = this.#before;
    this.#before = this.#now;
    this.#beforeCount = this.#nowCount;
    this.#now = oldest.fill(0);
    this.#nowCount = 0;
    // A clock that was set back would keep them until it is where it was.
    if (age >= 0 && age < rememberedSeconds) return;
    this.#before.fill(0);
    this.#beforeCount = 0;
  }

  #placeOf(words: Int32Array, base: number): number {
    return hashRecord(words, base, this.#key0, this.#key1) >>> (32 - placeBits);
  }
}
