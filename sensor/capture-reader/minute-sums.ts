/**
 * Sums of each UTC minute of a capture. Their number is limited, because damaged times may give any number of minutes.
 */

/** More than a year of minutes. */
const minutesMax = 600_000;

/** Counters of one UTC minute, unix seconds. */
export interface MinuteTotals {
  minute: number;
  packets: number;
  bytes: number;
  parserDropped: number;
}

export class MinuteSums {
  /** Packets of minutes above the limit. */
  leftOutPackets = 0;
  readonly #rows = new Map<number, MinuteTotals>();
  #last: MinuteTotals = { minute: Number.NaN, packets: 0, bytes: 0, parserDropped: 0 };

  add(seconds: number, bytes: number, parserDropped: number): void {
    const minute = Math.floor(seconds / 60) * 60;
    if (minute !== this.#last.minute && !this.#find(minute)) {
      this.leftOutPackets += 1;
      return;
    }
    const sum = this.#last;
    sum.packets += 1;
    sum.bytes += bytes;
    sum.parserDropped += parserDropped;
  }

  get count(): number {
    return this.#rows.size;
  }

  /** In the order of time. */
  rows(): MinuteTotals[] {
    return [...this.#rows.values()].sort((a, b) => a.minute - b.minute);
  }

  #find(minute: number): boolean {
    let sum = this.#rows.get(minute);
    if (!sum) {
      if (this.#rows.size >= minutesMax) return false;
      sum = { minute, packets: 0, bytes: 0, parserDropped: 0 };
      this.#rows.set(minute, sum);
    }
    this.#last = sum;
    return true;
  }
}
