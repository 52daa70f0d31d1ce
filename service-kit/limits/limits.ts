import type { Clock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createOwnLog, createSharedLog } from './create-log.ts';
import { createRedisLimits } from './redis-store.ts';
import type { Bounds } from './sliding-log.ts';

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
