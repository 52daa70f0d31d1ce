/** Epochs: what was protected, by which thresholds, since when. Each goes to the monitor once, with the next minutes. */
import { randomUUID } from 'node:crypto';
import { countingRule, type DetectorEpoch, epochsMax } from '#contracts/sensor-api/detection.ts';
import type { ThresholdGroup, Thresholds } from '#sensor/detector/index.ts';
import { epochRecords } from '#sensor/records/index.ts';
import type { RecordSource } from '#sensor/spool/index.ts';

export interface Protection {
  prefixes: string[];
  addresses: string[];
  thresholds: Thresholds;
  groups: readonly ThresholdGroup[];
}

export class Epochs implements RecordSource<'epochs'> {
  readonly kind = epochRecords;
  #key = '';
  #current: DetectorEpoch | null = null;
  #waiting: DetectorEpoch[] = [];

  /** The epoch of this protection, and whether it begins now. */
  of({ prefixes, addresses, thresholds, groups }: Protection, nowMs: number): { id: string; isNew: boolean } {
    // JSON has no infinity; a metric that is not judged reads as null.
    const key = JSON.stringify([prefixes, addresses, thresholds, groups]);
    if (this.#current && key === this.#key) return { id: this.#current.id, isNew: false };
    this.#key = key;
    this.#current = {
      ...{ id: randomUUID(), sinceMs: Math.round(nowMs) },
      ...{ prefixes: [...addresses, ...prefixes], countingRule },
    };
    this.#waiting.push(this.#current);
    if (this.#waiting.length > epochsMax) this.#waiting.shift();
    return { id: this.#current.id, isNew: true };
  }

  /** Nothing is detected any more. */
  end(): void {
    this.#current = null;
    this.#waiting = [];
  }

  ready(): DetectorEpoch[] {
    return [...this.#waiting];
  }

  committed(epochs: readonly DetectorEpoch[]): void {
    const done = new Set(epochs);
    this.#waiting = this.#waiting.filter((one) => !done.has(one));
  }
}
