/** Detects pauses of this machine: a host that is suspended for a minute could not capture it. */
import type { DeafTime } from './sensor-deaths.ts';

const lookEveryMs = 1_000;
/** A sensor reports a gap only for complete minutes, so shorter pauses do not matter. */
const standstillMs = 30_000;

export interface Standstills {
  /** Times at which the machine paused or its clock was set. */
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
