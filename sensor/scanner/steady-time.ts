/** Times of one scan: they begin at the wall clock, and later steps of that do not reach them. */
import type { Clock } from '#common/clock/index.ts';

/** Returns the wall time of now plus what has passed since, so that no scan ends before it began. */
export function startSteadyTime(clock: Clock): () => string {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => new Date(offsetMs + clock.monotonicMs()).toISOString();
}
