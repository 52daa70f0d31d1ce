/** What a limit answers, counted in this process or in a store. */

export interface Bounds {
  /** Events of a key within any window. */
  capacity: number;
  windowMs: number;
}

export interface Allowance {
  isAllowed: boolean;
  remaining: number;
  /** Seconds until the oldest event leaves the window; never 0. */
  resetSeconds: number;
}

/** A recorded event, by which it can be given back. */
export type EventId = number;

export interface SlidingLog {
  /** Records an event if there is room for it. Never rejects. */
  take(key: string): Promise<Allowance & { event: EventId }>;
  /** Forgets an event before its time, as if it had not happened. Never rejects. */
  giveBack(key: string, event: EventId): Promise<void>;
}

/** A log after an event was recorded or refused. */
export interface Counted {
  isAllowed: boolean;
  /** Events within the window. */
  count: number;
  oldestAgeMs: number;
}

export function allowanceOf({ capacity, windowMs }: Bounds, counted: Counted): Allowance {
  return {
    isAllowed: counted.isAllowed,
    remaining: Math.max(0, capacity - counted.count),
    // The age first: stamps have fractions, and a sum of them rounded up could promise a second beyond the window.
    resetSeconds: Math.max(1, Math.ceil((windowMs - counted.oldestAgeMs) / 1000)),
  };
}
