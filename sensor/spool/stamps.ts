import type { ClockStamp } from '#sensor/host-time/index.ts';

/** The clock of an upload, and the first minute that it stamped; what an upload tells of earlier times is not by it. */
export interface StampedBy extends ClockStamp {
  since: number;
}

/** The clock of the latest commit, and the last minute that was committed by it. */
export interface CommittedBy extends ClockStamp {
  throughMinute: number;
}
