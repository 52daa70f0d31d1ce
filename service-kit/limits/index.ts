import type { Clock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import {
  allowanceOf,
  type Bounds,
  createEventLog,
  type EventId,
  type EventLogOptions,
  type SlidingLog,
} from './event-log.ts';
import { createRedisLimits, type LimitStore } from './redis-store.ts';

/**
 * Limits of how often something may happen: at most so many events of a key within any window, such as 120 requests of an
 * API key within a minute.
 *
 * A limit is a sliding log: the stamps of the last events are kept, so there is no edge at which a caller gets twice the
 * limit. Without a store each process counts for itself. With one (Redis or Valkey) all processes of a program count
 * together, exactly: one script decides and records, by the clock of the store. Both give the same answers.
 *
 * While the store does not answer, is full or evicts, each process counts for itself, with what it has counted before; so
 * a key gets at most the limit once for each process, and no request fails or waits because of it (decision 0270). When
 * the store is back each process adds what it counted meanwhile, at the next event of the key.
 *
 * What has to hold without exception (orders of an account in an hour, failed sign-ins) is counted in the database.
 */

export type { Allowance, SlidingLog } from './event-log.ts';

export interface LimitsOptions {
  /** Redis or Valkey; null: each process counts for itself. */
  url: string | null;
  program: 'operations' | 'monitor';
  clock: Pick<Clock, 'monotonicMs'>;
  reporter: Reporter;
}

export type Limits = ReturnType<typeof createLimits>;

export function createLimits({ url, program, clock, reporter }: LimitsOptions) {
  const store = url === null ? null : createRedisLimits({ url, program, reporter });
  let isStarted = false;
  return {
    /** A limit; its name is the same in all processes that count together. */
    createLog: (name: string, bounds: Bounds) =>
      store === null
        ? createOwnLog({ ...bounds, clock })
        : createSharedLog(name, { ...bounds, clock }, store),
    /**
     * Why limits that should be shared are counted in this process alone, as a sentence; null when all is well, and in a
     * process that counts none.
     */
    findProblem(): string | null {
      const problem = isStarted ? (store?.problem ?? null) : null;
      return problem === null ? null : `Each process counts limits for itself. ${problem}`;
    },
    /** The connection to the store; without one there is nothing to start. */
    part: {
      name: 'limits',
      async start() {
        await store?.start();
        isStarted = true;
      },
      async stop() {
        isStarted = false;
        await store?.stop();
      },
    } satisfies Part,
  };
}

/** Events of one key that are added to the store afterwards; more are not worth its time. */
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
 * and a store that comes back, or lost its data, gets them.
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
