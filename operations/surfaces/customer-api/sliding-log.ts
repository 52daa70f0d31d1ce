/**
 * At most `capacity` events of a key within any window: the stamps of the last ones are kept, so there is no edge at
 * which a caller gets twice the limit. It is memory of this process: replicas brake each for themselves.
 */
import type { Clock } from '#common/clock/index.ts';

export interface SlidingLogOptions {
  capacity: number;
  windowMs: number;
  clock: Clock;
  /** Keys that are remembered at a time; the longest unused is forgotten first. */
  keysMax?: number;
}

export interface Allowance {
  isAllowed: boolean;
  remaining: number;
  /** Seconds until the oldest event leaves the window; never 0. */
  resetSeconds: number;
}

export interface SlidingLog {
  /** Records an event if there is room for it. */
  take(key: string): Allowance;
  /** The same answer without recording anything. */
  peek(key: string): Allowance;
}

interface Log {
  stamps: number[];
  /** Index of the oldest stamp that counts; what stands before it is dropped now and then. */
  start: number;
}

export function createSlidingLog(options: SlidingLogOptions): SlidingLog {
  const logs = new Map<string, Log>();
  const keysMax = options.keysMax ?? 50_000;

  function touch(key: string): Log {
    const log = logs.get(key) ?? { stamps: [], start: 0 };
    // Back to the end of the map's order: the first key is the longest unused.
    logs.delete(key);
    logs.set(key, log);
    if (logs.size > keysMax) logs.delete(logs.keys().next().value!);
    return log;
  }

  function expire(log: Log, now: number): void {
    while (log.start < log.stamps.length && now - log.stamps[log.start]! >= options.windowMs) log.start += 1;
    if (log.start > 64 && log.start * 2 > log.stamps.length) {
      log.stamps.splice(0, log.start);
      log.start = 0;
    }
  }

  function answer(log: Log, now: number, isAllowed: boolean): Allowance {
    const oldest = log.stamps[log.start] ?? now;
    return {
      isAllowed,
      remaining: Math.max(0, options.capacity - (log.stamps.length - log.start)),
      // The age first: stamps have fractions, and a sum of them rounded up could promise a second beyond the window.
      resetSeconds: Math.max(1, Math.ceil((options.windowMs - (now - oldest)) / 1000)),
    };
  }

  return {
    take(key) {
      const now = options.clock.monotonicMs();
      const log = touch(key);
      expire(log, now);
      const isAllowed = log.stamps.length - log.start < options.capacity;
      if (isAllowed) log.stamps.push(now);
      return answer(log, now, isAllowed);
    },
    peek(key) {
      const now = options.clock.monotonicMs();
      const log = logs.get(key) ?? { stamps: [], start: 0 };
      expire(log, now);
      return answer(log, now, log.stamps.length - log.start < options.capacity);
    },
  };
}
