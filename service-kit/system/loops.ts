/** Loops: whether they run and succeed. */
import type { LeaseState } from '#service-kit/leases/index.ts';
import type { SystemSubject } from './subject.ts';

/** A loop that fails for a shorter time is no trouble, nor one that begins this much later than it should. */
const failingSecondsMin = 120;
const lateSeconds = 300;

/**
 * Null where no loop runs under the lease. `watchingSeconds`: how long the caller has watched without a break; after a pause of
 * everything each loop is late, and begins soon.
 */
export function judgeLoop(loop: LeaseState, nowMs: number, watchingSeconds: number): SystemSubject | null {
  const { name, intervalSeconds, succeededAtMs, failingSinceMs, lastError } = loop;
  if (intervalSeconds === null) return null;
  const isFailing = lastError !== null && failingSinceMs !== null;
  const sinceMs = isFailing ? failingSinceMs : (succeededAtMs ?? loop.acquiredAtMs);
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000));
  // A long run renews its lease.
  const isLate = isFailing
    ? seconds >= failingSecondsMin
    : !loop.isHeld && seconds > 2 * intervalSeconds + lateSeconds;
  const isKnown = isFailing || watchingSeconds > lateSeconds;
  return {
    kind: 'loop_failing',
    key: `loop:${name}`,
    name,
    verdict: isLate ? (isKnown ? 'bad' : 'unknown') : isFailing ? 'unknown' : 'good',
    details: { seconds, error: isFailing ? lastError : null },
  };
}
