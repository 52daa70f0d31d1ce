/**
 * Waits for a condition: resolves with its first value that is neither null nor false. Fails with `what`, and with the
 * last error of the look, when `patienceMs` is over; an error while looking means "not yet". `hopeless` says why waiting is of no use any more.
 */
export async function until<T>(
  what: string,
  patienceMs: number,
  look: () => Promise<T | null | false> | T | null | false,
  hopeless: () => string | false = () => false,
): Promise<T> {
  const startedMs = performance.now();
  const deadline = startedMs + patienceMs;
  let lastError: unknown = null;
  for (;;) {
    try {
      const value = await look();
      if (value !== null && value !== false) return value;
    } catch (error) {
      lastError = error;
    }
    const reason = hopeless();
    if (reason) throw new Error(`${what}: ${reason}`, { cause: lastError });
    if (performance.now() > deadline) {
      throw new Error(`it did not happen within ${patienceMs / 1000} s: ${what}`, { cause: lastError });
    }
    // What takes long takes minutes, and looking costs the processor that it needs.
    const everyMs = performance.now() - startedMs < 10_000 ? 250 : 1_000;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
