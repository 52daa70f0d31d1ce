/** Chooses the packets that add to a detail. */

/** Packets of a slot's bin after which only one of so many, chosen at random, adds to its detail. */
export const sampledFrom = 128;
export const sampleEvery = 32;

export class Sampler {
  #random: number;

  constructor(seed: number) {
    this.#random = seed | 1;
  }

  /** True for one call of so many. */
  next(): boolean {
    let word = this.#random;
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    this.#random = word;
    return (word & (sampleEvery - 1)) === 0;
  }
}
