/**
 * Time as a dependency: code gets a `Clock`, so that tests move time instead of waiting.
 *
 * Wall time names moments (minutes, stamps); monotonic time measures intervals, because wall time may step.
 */
export interface Clock {
  /** Wall time, milliseconds since 1970-01-01T00:00:00Z. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes backwards. */
  monotonicMs(): number;
  /** Resolves after `ms` of this clock's time, or at once when the signal is aborted. Never rejects. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** A clock that stands still until `advance` is called. */
export interface TestClock extends Clock {
  /** Moves time forward and resolves the waits that have come due, in order. */
  advance(ms: number): Promise<void>;
  /** Steps the wall clock alone, as an administrator or a time daemon would. */
  stepWall(ms: number): void;
  /** How many waits have neither come due nor been aborted: with it a test knows that a loop has done its turn. */
  waiting(): number;
}

/** Makes a test clock that starts at `startMs` of wall time; what takes its monotonic time for one since the start is wrong by days. */
export function createTestClock(startMs: number): TestClock {
  let monotonic = 400_000_000;
  let wallOffset = startMs - monotonic;
  let waiting: { at: number; resolve: () => void }[] = [];
  return {
    nowMs: () => wallOffset + monotonic,
    monotonicMs: () => monotonic,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const one = { at: monotonic + ms, resolve };
        waiting.push(one);
        const end = () => {
          waiting = waiting.filter((other) => other !== one);
          resolve();
        };
        signal?.addEventListener('abort', end, { once: true });
      }),
    async advance(ms) {
      const end = monotonic + ms;
      for (;;) {
        waiting.sort((a, b) => a.at - b.at);
        const next = waiting[0];
        if (!next || next.at > end) break;
        waiting.shift();
        monotonic = next.at;
        next.resolve();
        // A woken waiter may wait again before `end`; let it run first.
        await new Promise((resolve) => setImmediate(resolve));
      }
      monotonic = end;
    },
    stepWall(ms) {
      wallOffset += ms;
    },
    waiting: () => waiting.length,
  };
}

/** The start of the UTC minute that holds `ms`, in milliseconds. */
export function startOfMinuteMs(ms: number): number {
  return Math.floor(ms / 60_000) * 60_000;
}
