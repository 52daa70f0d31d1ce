/** Waiting times between attempts: exponential, capped, with jitter so that many waiters don't return as one. */
export interface Backoff {
  firstMs: number;
  maxMs: number;
}

/** The pause before attempt `attempt` + 1 (attempts count from 1), between half and the whole of the doubled time. */
export function backoffMs(backoff: Backoff, attempt: number, random: () => number = Math.random): number {
  const full = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full / 2 + (full / 2) * random());
}
