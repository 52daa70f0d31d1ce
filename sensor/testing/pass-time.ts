/** Time for tests of a loop that waits by a test clock and calls a real server. */
import type { TestClock } from '#common/clock/index.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Moves time on in steps until it is so. Time stands still while the loop does not wait: an answer is under way then,
 * however slow the machine is.
 */
export async function passTime(clock: TestClock, isSo: () => boolean, stepMs = 500): Promise<void> {
  while (!isSo()) {
    if (clock.waiting() > 0) await clock.advance(stepMs);
    await turn();
  }
}

/** Resolves when the loop waits: it has read the last answer then. */
export async function untilWaiting(clock: TestClock): Promise<void> {
  while (clock.waiting() === 0) await turn();
}
