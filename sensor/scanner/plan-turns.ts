/**
 * When the plan is fetched again: every ten seconds. Where a scan ended and another waits for its place, sooner: five
 * seconds after the fetch before, so that a place is not empty for up to ten (NET-8.5 allows a fetch every five).
 */
import type { Clock } from '#common/clock/index.ts';

const planEveryMs = 10_000;
const planSoonestMs = 5000;

export class PlanTurns {
  readonly #clock: Clock;
  #nap = new AbortController();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A scan ended: its place is free. */
  scanEnded(): void {
    this.#hasEnded = true;
    this.#nap.abort();
  }

  /** Resolves when it is time for the next fetch. `waitsForPlace` is asked after the end of a scan. */
  async wait(waitsForPlace: () => boolean, signal: AbortSignal): Promise<void> {
    const fromMs = this.#clock.monotonicMs();
    this.#hasEnded = false;
    await this.#clock.wait(planSoonestMs, signal);
    while (!signal.aborted) {
      const leftMs = fromMs + planEveryMs - this.#clock.monotonicMs();
      if (leftMs <= 0 || (this.#hasEnded && waitsForPlace())) return;
      this.#hasEnded = false;
      this.#nap = new AbortController();
      await this.#clock.wait(leftMs, AbortSignal.any([signal, this.#nap.signal]));
    }
  }
}
