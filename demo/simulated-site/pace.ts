/**
 * Pauses between uploads, so that loading takes what this machine has left and no more: while its CPUs are busy, by whatever, the
 * pauses grow, and they shrink when a good part of them is idle again.
 */
import { cpus } from 'node:os';
import type { Clock } from '#common/clock/index.ts';

/** Sums over all CPUs since the start, in any unit. */
export interface CpuTimes {
  idle: number;
  all: number;
}

const pauses = { leastMs: 25, mostMs: 1_000, factor: 1.5 } as const;
/** Below this share of idle time the machine counts as busy. */
const idleShareMin = 0.3;
/** A look at shorter times says more of chance than of load. */
const lookEveryMs = 250;

export interface Pace {
  /** Waits until the next upload may be sent. */
  pause(signal: AbortSignal): Promise<void>;
}

export function createPace(clock: Clock, readCpus: () => CpuTimes = readMachine): Pace {
  let pauseMs: number = pauses.leastMs;
  let seen = readCpus();
  let seenAtMs = clock.monotonicMs();
  return {
    async pause(signal) {
      if (clock.monotonicMs() - seenAtMs >= lookEveryMs) {
        const now = readCpus();
        const all = now.all - seen.all;
        const isBusy = all > 0 && (now.idle - seen.idle) / all < idleShareMin;
        pauseMs = isBusy
          ? Math.min(pauses.mostMs, pauseMs * pauses.factor)
          : Math.max(pauses.leastMs, pauseMs / pauses.factor);
        seen = now;
        seenAtMs = clock.monotonicMs();
      }
      await clock.wait(pauseMs, signal);
    },
  };
}

function readMachine(): CpuTimes {
  const sums = { idle: 0, all: 0 };
  for (const { times } of cpus()) {
    sums.idle += times.idle;
    sums.all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return sums;
}
