/**
 * Loops that do what is due and rest when nothing is.
 *
 * A failure is reported and the loop goes on after a rest; the same one, of any of its workers, is reported once until work succeeds. `stop` waits for the work that is under way, which sees the
 * signal.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

export interface WorkLoopOptions {
  name: string;
  clock: Clock;
  reporter: Reporter;
  /** The rest after a look that found nothing. */
  pollMs: number;
  /** Loops in this process; default 1. */
  workers?: number;
  /** The log line of a failure, such as "webhooks can not be sent". */
  failure: string;
  /** Does something of what is due; false when nothing is. */
  work(signal: AbortSignal): Promise<boolean>;
}

export type WorkLoop = ReturnType<typeof createWorkLoop>;

export function createWorkLoop(options: WorkLoopOptions) {
  const { name, clock, reporter, work } = options;
  let stopping = new AbortController();
  let rest = new AbortController();
  let finished: Promise<unknown> = Promise.resolve();
  let lastFault: string | null = null;

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Taken before the work: what wakes during it is not lost.
      const woken = rest.signal;
      let didWork = false;
      try {
        didWork = await work(stopping.signal);
        if (lastFault !== null) reporter.info('it works again', { part: name });
        lastFault = null;
      } catch (error) {
        const fault = describeError(error);
        if (fault !== lastFault) reporter.error(options.failure, { error: fault });
        lastFault = fault;
      }
      if (!didWork) await clock.wait(options.pollMs, AbortSignal.any([woken, stopping.signal]));
    }
  }

  return {
    name,
    /** Ends a rest now. */
    wake() {
      rest.abort();
      rest = new AbortController();
    },
    /** Works until nothing is due; for tests and commands. */
    async drain() {
      while (await work(stopping.signal));
    },
    async start() {
      stopping = new AbortController();
      finished = Promise.all(Array.from({ length: options.workers ?? 1 }, loop));
    },
    async stop() {
      stopping.abort();
      await finished;
    },
  };
}
