/** The two sliding logs: of this process alone, and shared by all processes that have the same store. */
import { createEventLog, type EventLogOptions } from './event-log.ts';
import type { LimitStore } from './limit-store.ts';
import { allowanceOf, type EventId, type SlidingLog } from './sliding-log.ts';

/** Events of one key that the store is told of afterwards; what is above is not worth its time. */
const laterMax = 5_000;

/** Counts in this process alone. */
export function createOwnLog(options: EventLogOptions): SlidingLog {
  const log = createEventLog(options);
  let last: EventId = 0;
  return {
    async take(key) {
      last += 1;
      return { ...allowanceOf(options, log.take(log.touch(key), last)), event: last };
    },
    async giveBack(key, event) {
      log.remove(log.touch(key), event);
    },
  };
}

/**
 * Counts in the store, and remembers what was allowed by this process: without the store the limit goes on from there,
 * and a store that comes back, or lost its data, is told of it.
 */
export function createSharedLog(name: string, options: EventLogOptions, store: LimitStore): SlidingLog {
  const log = createEventLog(options);
  let last: EventId = 0;
  return {
    async take(key) {
      last += 1;
      const event = last;
      const events = log.touch(key);
      const { generation } = store;
      const { untold } = events;
      const later = events.knownIn === generation ? [] : log.list(events, laterMax);
      const counted = await store.take({ log: name, key, event, later, ...options });
      if (counted === null) {
        events.untold += 1;
        events.knownIn = 0;
        return { ...allowanceOf(options, log.take(events, event)), event };
      }
      if (counted.isAllowed) log.record(events, event);
      // Unless another request of the key was counted without the store meanwhile.
      if (events.untold === untold) events.knownIn = generation;
      return { ...allowanceOf(options, counted), event };
    },
    async giveBack(key, event) {
      log.remove(log.touch(key), event);
      await store.remove({ log: name, key, event });
    },
  };
}
