import { describeError } from '#common/errors/index.ts';

/** Maximum time that one look counts: a paused machine had no chance to continue. */
const lookMsMax = 2_000;

/**
 * Waits for a condition. Resolves with the first value that is neither null nor false. Fails with `what`, and with the
 * last error of a look, when its looks have taken `patienceMs`; an error in a look means "not yet". `hopeless` returns
 * the reason why waiting is useless. The limit is a number of looks, so that pauses of the machine do not count.
 */
export async function until<T>(
  what: string,
  patienceMs: number,
  look: () => Promise<T | null | false> | T | null | false,
  hopeless: () => string | false = () => false,
): Promise<T> {
  let waitedMs = 0;
  let lastError: unknown = null;
  for (;;) {
    const begunMs = performance.now();
    try {
      const value = await look();
      if (value !== null && value !== false) return value;
      lastError = null;
    } catch (error) {
      lastError = error;
    }
    const reason = hopeless();
    if (reason) throw new Error(`${what}: ${reason}`, { cause: lastError });
    if (waitedMs > patienceMs) {
      const why = lastError === null ? '' : ` (${describeError(lastError)})`;
      throw new Error(`it did not happen within ${patienceMs / 1000} s: ${what}${why}`, { cause: lastError });
    }
    // Slow conditions take minutes, and looking costs processor time.
    const everyMs = waitedMs < 10_000 ? 250 : waitedMs < 30_000 ? 1_000 : 3_000;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    waitedMs += Math.min(performance.now() - begunMs, lookMsMax);
  }
}
