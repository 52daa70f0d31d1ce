/**
 * A client's day: exchange after exchange at a rate that follows the hour, resting around each UTC minute.
 *
 * One exchange at a time, so a slow machine lowers the rate instead of piling up connections.
 */
import type { Clock } from '#common/clock/index.ts';
import { rhythmAt } from './daily-rhythm.ts';
import { type Exchange, holdExchange } from './exchanges.ts';

/** How far the rate rises above its mean in the afternoon and falls below it at night. */
const rhythmDepth = 0.35;

export interface TalkOptions {
  clock: Clock;
  /** The mean over a day. */
  perSecond: number;
  /** The exchange to hold next, or null when there is no peer at the moment. */
  next: () => Exchange | null;
  signal: AbortSignal;
}

export interface TalkCounts {
  held: number;
  failed: number;
  lastFailure: string | null;
}

/** Talks until the signal is aborted; a rate of 0 is silence. `counts` is kept up to date. */
export async function talk(options: TalkOptions, counts: TalkCounts): Promise<void> {
  const { clock, signal } = options;
  while (!signal.aborted && options.perSecond > 0) {
    // Between half and one and a half of the mean pause, so that clients don't fall into step.
    const perSecond = options.perSecond * rhythmAt('day', clock.nowMs(), rhythmDepth);
    const pauseMs = (1000 / perSecond) * (0.5 + Math.random());
    await clock.wait(pauseMs, signal);
    const restMs = msUntilExchange(clock.nowMs());
    // Those who rested together don't all begin in the same instant.
    if (restMs > 0) await clock.wait(restMs + 1000 * Math.random(), signal);
    const exchange = signal.aborted ? null : options.next();
    if (!exchange) continue;
    await holdUntilCut(exchange, options, counts);
  }
}

async function holdUntilCut(exchange: Exchange, options: TalkOptions, counts: TalkCounts): Promise<void> {
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), msUntilCut(options.clock.nowMs()));
  const stop = () => cut.abort();
  options.signal.addEventListener('abort', stop, { once: true });
  try {
    await holdExchange(exchange, cut.signal);
    counts.held += 1;
  } catch (error) {
    if (cut.signal.aborted) return;
    counts.failed += 1;
    counts.lastFailure = `${exchange.protocol} ${exchange.host}: ${(error as Error).message}`;
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener('abort', stop);
  }
}

// The rest around each UTC minute: no packet of a guest from half a second before to half a second after it.
//
// So that a minute's counters are unambiguous however the counting programs round their clocks. New exchanges stop a
// second ahead, and what is still open shortly before the half second is cut.

const minuteMs = 60_000;
/** Within the minute, milliseconds: exchanges begin from here … */
const beginsMs = 700;
/** … to here; */
const endsMs = 58_900;
/** what is still open now is cut. */
const cutMs = 59_250;

/** Milliseconds to wait until an exchange may begin, 0 when it may now. */
export function msUntilExchange(nowMs: number): number {
  const at = nowMs % minuteMs;
  if (at < beginsMs) return beginsMs - at;
  return at < endsMs ? 0 : minuteMs + beginsMs - at;
}

/** Milliseconds until connections that are still open are cut. */
export function msUntilCut(nowMs: number): number {
  const at = nowMs % minuteMs;
  return at < cutMs ? cutMs - at : minuteMs + cutMs - at;
}
