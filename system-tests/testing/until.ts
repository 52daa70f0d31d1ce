import { describeError } from '#common/errors/index.ts';

/** One look counts as this much at most: a machine that stood still meanwhile has had no chance to go on. */
const lookMsMax = 2_000;

/**
 * Waits for a condition: resolves with its first value that is neither null nor false. Fails with `what`, and with the
 * last error of the look, when its looks have taken `patienceMs`; an error while looking means "not yet". `hopeless` says
 * why waiting is of no use any more. Patience is a number of looks, so that time in which the machine stood still is
 * not counted.
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
    // What takes long takes minutes, and looking costs the processor that it needs.
    const everyMs = waitedMs < 10_000 ? 250 : 1_000;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    waitedMs += Math.min(performance.now() - begunMs, lookMsMax);
  }
}
