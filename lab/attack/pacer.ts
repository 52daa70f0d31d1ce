/**
 * A token bucket: says how many packets are due.
 *
 * It holds 20 ms of the rate and one packet. What a longer stall of the machine left unsent is forfeited: sending
 * it later would be a burst above the rate that was asked for.
 */

const depthSeconds = 0.02;
/** Far below one packet; absorbs the rounding of clocks in fractions of milliseconds. */
const tolerance = 1e-6;

export interface Pacer {
  /** Takes everything that is due now. */
  take(): number;
}

/** Starts empty at the clock's present. */
export function createPacer(clock: { monotonicMs(): number }, perSecond: number): Pacer {
  const depth = 1 + perSecond * depthSeconds;
  const startMs = clock.monotonicMs();
  let gone = 0;
  return {
    take() {
      const earned = ((clock.monotonicMs() - startMs) * perSecond) / 1000;
      if (earned - gone > depth) gone = earned - depth;
      const due = Math.floor(earned - gone + tolerance);
      gone += due;
      return due;
    },
  };
}
