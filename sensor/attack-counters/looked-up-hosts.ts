/** The hosts whose open connections are looked up, and since when: only while they have much traffic. */
import { Place } from './pair-record.ts';

export class LookedUpHosts {
  /** By host: the last second in which its connections were looked up, and since when without a break. */
  readonly #last = new Int32Array(Place.prefix).fill(-1);
  readonly #since = new Int32Array(Place.prefix);

  note(place: number, second: number): void {
    const slot = place - Place.host;
    if (slot < 0 || place >= Place.prefix || this.#last[slot] === second) return;
    if (this.#last[slot] !== second - 1) this.#since[slot] = second;
    this.#last[slot] = second;
  }

  /** True when an end of a pair was looked up in the second before too: of the first one a part may be missing. */
  isKnownWhole(places: number, second: number): boolean {
    for (const place of [places >>> 16, places & 0xffff]) {
      const slot = place - Place.host;
      if (this.#last[slot] === second && this.#since[slot]! < second) return true;
    }
    return false;
  }
}
