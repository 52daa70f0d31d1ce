/** How many pairs of each host had traffic in a second, for those who ask why it is an attack or none. */
import { Place, State, Word } from './pair-record.ts';

/** Pairs with traffic in a second. */
export interface PairCount {
  established: number;
  /** Those that have not conversed yet. A source that has had no answer has no pair. */
  others: number;
}

export class PairCounts {
  readonly #established = new Int32Array(Place.prefix);
  readonly #others = new Int32Array(Place.prefix);
  #isEmpty = true;

  clear(): void {
    if (this.#isEmpty) return;
    this.#established.fill(0);
    this.#others.fill(0);
    this.#isEmpty = true;
  }

  /** Counts a pair for the hosts at its ends. */
  note(records: Int32Array, base: number): void {
    const isEstablished = (records[base + Word.state]! & State.isEstablished) !== 0;
    const counts = isEstablished ? this.#established : this.#others;
    const places = records[base + Word.places]!;
    for (const place of [places >>> 16, places & 0xffff])
      if (place !== Place.none && place < Place.prefix) counts[place]! += 1;
    this.#isEmpty = false;
  }

  ofHost(slot: number): PairCount {
    const place = Place.host + slot;
    return { established: this.#established[place]!, others: this.#others[place]! };
  }
}
