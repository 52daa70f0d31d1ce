import type { Clock } from '#common/clock/index.ts';

/** At most one write in this time: whoever floods us with bad signatures must not be writing our database with them. */
const writeEveryMs = 5_000;

export interface RefusalCounter {
  add(): void;
}

/**
 * Counts refusals in memory and writes the sum now and then. What was counted since the last write is lost with the
 * process: the figure tells that something is refused, it is no ledger.
 */
export function createRefusalCounter(clock: Clock, write: (count: number) => Promise<void>): RefusalCounter {
  let pending = 0;
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  return {
    add() {
      pending += 1;
      if (clock.monotonicMs() - writtenAtMs < writeEveryMs) return;
      writtenAtMs = clock.monotonicMs();
      const count = pending;
      pending = 0;
      write(count).catch(() => {
        pending += count;
      });
    },
  };
}
