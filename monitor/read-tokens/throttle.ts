/** Keeps one token from using the program alone: requests of a minute, and queries at a time. Counted in this process. */
import type { Clock } from '#common/clock/index.ts';

export const requestsPerMinute = 120;
export const underWayMax = 4;

export type Admission =
  | { isAdmitted: true; end: () => void }
  | { isAdmitted: false; retryAfterSeconds: number; why: string };

const windowMs = 60_000;
const tokensMax = 10_000;

export function createTokenThrottle(clock: Pick<Clock, 'monotonicMs'>): (id: string) => Admission {
  const known = new Map<string, { endsAtMs: number; count: number; underWay: number }>();
  return (id) => {
    const nowMs = clock.monotonicMs();
    let entry = known.get(id);
    if (!entry) {
      // Tokens that rest are forgotten before the map grows without end.
      if (known.size >= tokensMax)
        for (const [key, one] of known) if (one.endsAtMs <= nowMs && one.underWay === 0) known.delete(key);
      entry = { endsAtMs: nowMs + windowMs, count: 0, underWay: 0 };
      known.set(id, entry);
    }
    if (entry.endsAtMs <= nowMs) {
      entry.endsAtMs = nowMs + windowMs;
      entry.count = 0;
    }
    const refuse = (seconds: number, why: string): Admission => ({
      isAdmitted: false,
      retryAfterSeconds: Math.max(1, Math.ceil(seconds)),
      why,
    });
    if (entry.count >= requestsPerMinute)
      return refuse(
        (entry.endsAtMs - nowMs) / 1000,
        `This token made ${requestsPerMinute} requests within a minute. Ask less often, or use one query with two dimensions instead of many.`,
      );
    if (entry.underWay >= underWayMax)
      return refuse(
        1,
        `This token has ${underWayMax} requests under way. Send the next one when one has ended.`,
      );
    entry.count += 1;
    entry.underWay += 1;
    const admitted = entry;
    let hasEnded = false;
    return {
      isAdmitted: true,
      end() {
        if (hasEnded) return;
        hasEnded = true;
        admitted.underWay -= 1;
      },
    };
  };
}
