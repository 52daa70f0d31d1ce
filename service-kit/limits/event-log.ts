/** The events of the last window by key, in the memory of this process. */
import type { Clock } from '#common/clock/index.ts';

/** Of one key; the oldest event first. */
export interface KeyEvents {
  stamps: number[];
  ids: EventId[];
  /** Index of the oldest event that counts; what stands before it is dropped now and then. */
  start: number;
  /** The generation of the store in which it knew all of these events; 0: it may miss some. */
  knownIn: number;
  /** How often an event was counted without the store. */
  untold: number;
}

export interface EventLogOptions extends Bounds {
  clock: Pick<Clock, 'monotonicMs'>;
  /** Keys that are remembered at a time; the longest unused is forgotten first. */
  keysMax?: number;
}

export type EventLog = ReturnType<typeof createEventLog>;

export function createEventLog(options: EventLogOptions) {
  const { capacity, windowMs, clock, keysMax = 50_000 } = options;
  const known = new Map<string, KeyEvents>();

  function expire(events: KeyEvents, now: number): void {
    const { stamps, ids } = events;
    while (events.start < stamps.length && now - stamps[events.start]! >= windowMs) events.start += 1;
    if (events.start > 64 && events.start * 2 > stamps.length) {
      stamps.splice(0, events.start);
      ids.splice(0, events.start);
      events.start = 0;
    }
  }

  const record = (events: KeyEvents, id: EventId, now: number) => {
    events.stamps.push(now);
    events.ids.push(id);
  };

  return {
    /** The key's events, which become the last used. */
    touch(key: string): KeyEvents {
      const events = known.get(key) ?? { stamps: [], ids: [], start: 0, knownIn: 0, untold: 0 };
      // Back to the end of the map's order: the first key is the longest unused.
      known.delete(key);
      known.set(key, events);
      if (known.size > keysMax) known.delete(known.keys().next().value!);
      return events;
    },
    /** Records an event if there is room for it. */
    take(events: KeyEvents, id: EventId): Counted {
      const now = clock.monotonicMs();
      expire(events, now);
      const isAllowed = events.stamps.length - events.start < capacity;
      if (isAllowed) record(events, id, now);
      const oldest = events.stamps[events.start] ?? now;
      return { isAllowed, count: events.stamps.length - events.start, oldestAgeMs: now - oldest };
    },
    /** Records an event that was allowed elsewhere. */
    record(events: KeyEvents, id: EventId) {
      const now = clock.monotonicMs();
      expire(events, now);
      record(events, id, now);
    },
    remove(events: KeyEvents, id: EventId) {
      const at = events.ids.lastIndexOf(id);
      if (at < events.start) return;
      events.stamps.splice(at, 1);
      events.ids.splice(at, 1);
    },
    /** Events within the window with their ages, the newest `max` of them. */
    list(events: KeyEvents, max: number): { id: EventId; ageMs: number }[] {
      const now = clock.monotonicMs();
      expire(events, now);
      const from = Math.max(events.start, events.ids.length - max);
      return events.ids.slice(from).map((id, i) => ({ id, ageMs: now - events.stamps[from + i]! }));
    },
  };
}

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

/** What a limit answers, counted in this process or in a store. */
export function allowanceOf({ capacity, windowMs }: Bounds, counted: Counted): Allowance {
  return {
    isAllowed: counted.isAllowed,
    remaining: Math.max(0, capacity - counted.count),
    // The age first: stamps have fractions, and a sum of them rounded up could promise a second beyond the window.
    resetSeconds: Math.max(1, Math.ceil((windowMs - counted.oldestAgeMs) / 1000)),
  };
}
