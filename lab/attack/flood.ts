/** Sends at an even rate until the time is over or the signal is aborted. */
import type { Clock } from '#common/clock/index.ts';

export interface FloodOptions {
  clock: Clock;
  perSecond: number;
  seconds: number;
  signal: AbortSignal;
  /** Sends at most this many; returns how many were sent. */
  send: (count: number) => number;
}

export interface FloodProgress {
  /** Packets; of `connection_flood`, connections. */
  sent: number;
  elapsedMs: number;
}

/** Between two looks at the clock. */
const turnMs = 1;

/** Keeps `progress` up to date and resolves when the flood is over. */
export async function flood(options: FloodOptions, progress: FloodProgress): Promise<void> {
  const { clock, signal } = options;
  const startMs = clock.monotonicMs();
  const pacer = createPacer(clock, options.perSecond);
  const most = options.perSecond * options.seconds;
  while (!signal.aborted) {
    // The time is read first: what falls due in the last turn is sent, and nothing after it.
    progress.elapsedMs = Math.min(clock.monotonicMs() - startMs, options.seconds * 1000);
    const due = Math.min(pacer.take(), most - progress.sent);
    if (due > 0) progress.sent += options.send(due);
    if (progress.elapsedMs >= options.seconds * 1000) return;
    await clock.wait(turnMs, signal);
  }
}

// A token bucket: says how many packets are due.
//
// It holds 20 ms of the rate and one packet. What a longer stall of the machine left unsent is forfeited: sending
// it later would be a burst above the rate that was asked for.

const depthSeconds = 0.02;
/** Far below one packet; absorbs the rounding of clocks in fractions of milliseconds. */
const tolerance = 1e-6;

interface Pacer {
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
