import type { Clock } from '#common/clock/index.ts';

/** At most one write in this time, so that a flood of bad signatures does not become a flood of writes. */
const writeEveryMs = 5_000;

/**
 * Counts refusals in memory and writes the sum from time to time. Unwritten counts are lost with the process, which is
 * acceptable for this statistic.
 */
export function createRefusalCounter(clock: Clock, write: (count: number) => Promise<void>) {
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
