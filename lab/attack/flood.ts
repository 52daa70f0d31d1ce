/** Sends at an even rate until the time is over or the signal is aborted. */
import type { Clock } from '#common/clock/index.ts';
import { createPacer } from './pacer.ts';

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
