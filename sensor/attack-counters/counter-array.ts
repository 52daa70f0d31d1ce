/**
 * An array of counters in 31 bits each, because that is enough for almost all of them: 2 GiB of one kind of packets in one
 * second. What is above is kept aside, so sums stay exact.
 */
const range = 2 ** 31;

export class CounterArray {
  /** What is below 2^31. */
  low: Int32Array;
  /** What is above, by position. */
  #high = new Map<number, number>();

  constructor(length: number) {
    this.low = new Int32Array(length);
  }

  /** Adds a whole number of at least zero, and returns the part of the sum below 2^31. */
  add(at: number, amount: number): number {
    const sum = this.low[at]! + amount;
    if (sum >= range) return this.#carry(at, sum);
    this.low[at] = sum;
    return sum;
  }

  /** Takes a whole number off, which the counter has at least. */
  subtract(at: number, amount: number): void {
    const rest = this.get(at) - amount;
    const below = rest % range;
    this.low[at] = below;
    if (rest > below) this.#high.set(at, rest - below);
    else this.#high.delete(at);
  }

  /** True when every counter is in `low`: then it may be read instead of asking `get`. */
  get isLow(): boolean {
    return this.#high.size === 0;
  }

  get(at: number): number {
    return this.low[at]! + (this.#high.size === 0 ? 0 : (this.#high.get(at) ?? 0));
  }

  /** True when the counter is at least this large. */
  reaches(at: number, amount: number): boolean {
    return this.low[at]! >= amount || (this.#high.size > 0 && this.get(at) >= amount);
  }

  clear(from: number, to: number): void {
    const { low } = this;
    // A few counters: a loop takes less than the call of `fill`.
    for (let at = from; at < to; at += 1) low[at] = 0;
    if (this.#high.size === 0) return;
    for (const at of this.#high.keys()) if (at >= from && at < to) this.#high.delete(at);
  }

  /** Makes room for more counters. */
  resize(length: number): void {
    const { low } = this;
    this.low = new Int32Array(length);
    this.low.set(low);
  }

  /** Moves the counters of one range to the beginning of another one below it. */
  move(from: number, length: number, to: number): void {
    if (from === to) return;
    this.clear(to, to + length);
    this.low.copyWithin(to, from, from + length);
    if (this.#high.size === 0) return;
    for (const [at, above] of [...this.#high]) {
      if (at < from || at >= from + length) continue;
      this.#high.delete(at);
      this.#high.set(at - from + to, above);
    }
  }

  #carry(at: number, sum: number): number {
    const below = sum % range;
    this.#high.set(at, (this.#high.get(at) ?? 0) + sum - below);
    this.low[at] = below;
    return below;
  }
}
