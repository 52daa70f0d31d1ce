/** Tells a wall clock that was set from time that passed, by comparing it with monotonic time again and again. */
import { clockStepMs } from '#sensor/host-time/index.ts';

/** A frame may be stamped a little later than the clock was read. */
const aheadSeconds = 2;
/** How late a frame may come out of the ring. */
const lateSeconds = 61;
/** Two reads further apart than this were interrupted, and say nothing. */
const readGapMaxMs = 50;

export interface WallWatch {
  /** Wall time, and by how much the clock was set since the last look; 0: it was not. */
  look(): { nowMs: number; stepMs: number };
  /**
   * A frame's own time, as far as the time that passed allows it. One outside of that was stamped after the clock was set
   * and before that was seen, or before and handed over after: it belongs to the present.
   */
  believe(seconds: number): number;
}

export function createWallWatch(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
): WallWatch {
  let seenMs = wallMs();
  let offsetMs = seenMs - monotonicMs();
  return {
    look() {
      const beforeMs = monotonicMs();
      const nowMs = wallMs();
      const afterMs = monotonicMs();
      const changeMs = nowMs - beforeMs - offsetMs;
      if (afterMs - beforeMs > readGapMaxMs) return { nowMs: afterMs + offsetMs, stepMs: 0 };
      seenMs = nowMs;
      // Followed from look to look, so that a clock that is slewed for hours is never taken for one that was set.
      offsetMs += changeMs;
      return { nowMs, stepMs: Math.abs(changeMs) < clockStepMs ? 0 : changeMs };
    },
    believe(seconds) {
      const presentMs = monotonicMs() + offsetMs;
      const isPossible = seconds <= presentMs / 1000 + aheadSeconds && seconds >= seenMs / 1000 - lateSeconds;
      return isPossible ? seconds : Math.floor(presentMs / 1000);
    },
  };
}
