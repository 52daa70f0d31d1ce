/** Detects steps of the wall clock by comparing it with monotonic time at every look. */
import { clockStepMs } from '#sensor/host-time/index.ts';

/** A frame may be stamped slightly later than the clock was read. */
const aheadSeconds = 2;
/** How late a frame may come from the ring. */
const lateSeconds = 61;
/** Two reads with a longer interval were interrupted and are not compared. */
const readGapMaxMs = 50;

export type WallWatch = ReturnType<typeof createWallWatch>;

export function createWallWatch(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
) {
  let seenMs = wallMs();
  let offsetMs = seenMs - monotonicMs();
  return {
    /** Wall time, and the clock step since the last look; 0 for none. */
    look(): { nowMs: number; stepMs: number } {
      const beforeMs = monotonicMs();
      const nowMs = wallMs();
      const afterMs = monotonicMs();
      const changeMs = nowMs - beforeMs - offsetMs;
      if (afterMs - beforeMs > readGapMaxMs) return { nowMs: afterMs + offsetMs, stepMs: 0 };
      seenMs = nowMs;
      // Updated at every look, so that hours of slewing do not add up to a step.
      offsetMs += changeMs;
      return { nowMs, stepMs: Math.abs(changeMs) < clockStepMs ? 0 : changeMs };
    },
    /**
     * The frame's own time if it is plausible for the passed time. Otherwise the frame was stamped around a clock step
     * and counts as present.
     */
    clampTime(seconds: number): number {
      const presentMs = monotonicMs() + offsetMs;
      const isPossible = seconds <= presentMs / 1000 + aheadSeconds && seconds >= seenMs / 1000 - lateSeconds;
      return isPossible ? seconds : Math.floor(presentMs / 1000);
    },
  };
}
