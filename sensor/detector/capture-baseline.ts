/** What a capture usually has: the mean of its latest healthy minutes. */

/** Minutes that are looked at, and how many of them must have been observed as a whole and without an attack. */
const minutesBack = 30;
const healthyMin = 5;

export interface MeanRate {
  pps: number;
  bps: number;
}

interface OpenMinute {
  minute: number;
  healthySeconds: number;
  packets: number;
  bytes: number;
}

export class CaptureBaseline {
  #open: OpenMinute | null = null;
  #healthy: (MeanRate & { minute: number })[] = [];

  /** Adds one second, in unix seconds. A minute counts when each of its seconds was healthy. */
  note(unixSecond: number, amount: { packets: number; bytes: number }, isHealthy: boolean): void {
    const minute = Math.floor(unixSecond / 60);
    if (this.#open?.minute !== minute) {
      this.#close(minute);
      this.#open = { minute, healthySeconds: 0, packets: 0, bytes: 0 };
    }
    if (!isHealthy) return;
    this.#open.healthySeconds += 1;
    this.#open.packets += amount.packets;
    this.#open.bytes += amount.bytes;
  }

  /** The mean; null while too little is known. */
  mean(): MeanRate | null {
    const count = this.#healthy.length;
    if (count < healthyMin) return null;
    const of = (field: 'pps' | 'bps') => this.#healthy.reduce((sum, one) => sum + one[field], 0) / count;
    return { pps: of('pps'), bps: of('bps') };
  }

  /** Minutes in the future are of a clock that was set back since. */
  #close(now: number): void {
    const one = this.#open;
    if (one && one.healthySeconds >= 60)
      this.#healthy.push({ minute: one.minute, pps: one.packets / 60, bps: (one.bytes * 8) / 60 });
    this.#healthy = this.#healthy.filter(({ minute }) => minute < now && minute >= now - minutesBack);
  }
}
