/** Watches whether this machine stood still: a host that sleeps for a minute is for the sensor a minute that it did not see. */
import type { DeafTime } from './sensor-deaths.ts';

const lookEveryMs = 1_000;
/** A sensor names a gap only of a whole minute that passed in silence, so shorter ones excuse nothing. */
const standstillMs = 30_000;

export interface Standstills {
  /** When the machine stood still, or its clock was set. */
  times(): DeafTime[];
  stop(): void;
}

export function watchStandstills(nowMs: () => number = Date.now): Standstills {
  const times: DeafTime[] = [];
  let lookedMs = nowMs();
  const look = () => {
    const at = nowMs();
    if (Math.abs(at - lookedMs) > standstillMs)
      times.push({ fromMs: Math.min(lookedMs, at), toMs: Math.max(lookedMs, at) });
    lookedMs = at;
  };
  const timer = setInterval(look, lookEveryMs);
  timer.unref();
  return {
    times() {
      look();
      return [...times];
    },
    stop: () => clearInterval(timer),
  };
}
