import type { Clock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createOwnLog, createSharedLog } from './create-log.ts';
import { createRedisLimits } from './redis-store.ts';
import type { Bounds, SlidingLog } from './sliding-log.ts';

export interface LimitsOptions {
  /** Redis or Valkey; null: each process counts for itself. */
  url: string | null;
  program: 'operations' | 'monitor';
  clock: Pick<Clock, 'monotonicMs'>;
  reporter: Reporter;
}

export interface Limits {
  /** A limit; its name is the same in all processes that count together. */
  createLog(name: string, bounds: Bounds): SlidingLog;
  /**
   * Why limits that should be shared are counted in this process alone, as a sentence; null when all is well, and in a
   * process that counts none.
   */
  findProblem(): string | null;
  /** The connection to the store; without one there is nothing to start. */
  readonly part: Part;
}

export function createLimits({ url, program, clock, reporter }: LimitsOptions): Limits {
  const store = url === null ? null : createRedisLimits({ url, program, reporter });
  let isStarted = false;
  return {
    createLog: (name, bounds) =>
      store === null
        ? createOwnLog({ ...bounds, clock })
        : createSharedLog(name, { ...bounds, clock }, store),
    findProblem() {
      const problem = isStarted ? (store?.problem ?? null) : null;
      return problem === null ? null : `Each process counts limits for itself. ${problem}`;
    },
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
    },
  };
}
