/** Live windows that wait to be posted, the latest only, and each for a minute at most. */
import type { Clock } from '#common/clock/index.ts';
import { type LiveWindow, liveWindowsMax } from '#contracts/sensor-api/live-codec.ts';

/** Age since `offer` at which a window is dropped. */
const liveAgeMaxMs = 60_000;

export interface WaitingWindow {
  window: LiveWindow;
  offeredAtMs: number;
}

export class WindowQueue {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #waiting: readonly WaitingWindow[] = [];
  #dropped = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get waiting(): readonly WaitingWindow[] {
    return this.#waiting;
  }

  /** How many windows were dropped unposted. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(window: LiveWindow): void {
    this.#waiting = [...this.#waiting, { window, offeredAtMs: this.#clock.monotonicMs() }];
    this.dropAged();
  }

  dropAged(): void {
    const oldest = this.#clock.monotonicMs() - liveAgeMaxMs;
    const fresh = this.#waiting.filter(({ offeredAtMs }) => offeredAtMs > oldest).slice(-liveWindowsMax);
    this.#dropped += this.#waiting.length - fresh.length;
    this.#waiting = fresh;
  }

  /** These were posted, or refused for good and so dropped. */
  remove(settled: readonly WaitingWindow[], wasPosted: boolean): void {
    this.#waiting = this.#waiting.filter((one) => !settled.includes(one));
    if (!wasPosted) this.#dropped += settled.length;
  }

  clear(): void {
    this.#waiting = [];
  }
}
