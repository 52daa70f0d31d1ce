/**
 * Pauses between rounds of uploads, so that loading takes what this machine has left and no more: while its CPUs are busy, with any work, the
 * pauses grow, and they shrink when a good part of them is idle again.
 */
import { cpus } from 'node:os';
import type { Clock } from '#common/clock/index.ts';

/** Sums over all CPUs since the start, in any unit. */
export interface CpuTimes {
  idle: number;
  all: number;
}

const pauses = { leastMs: 400, mostMs: 8_000, factor: 1.5 } as const;
/** Below this share of idle time the machine counts as busy. */
const idleShareMin = 0.3;

export interface Pace {
  /** Waits until the next round may be sent. */
  pause(signal: AbortSignal): Promise<void>;
}

export function createPace(clock: Clock, readCpus: () => CpuTimes = readMachine): Pace {
  let pauseMs: number = pauses.leastMs;
  let seen = readCpus();
  return {
    async pause(signal) {
      const now = readCpus();
      const all = now.all - seen.all;
      const isBusy = all > 0 && (now.idle - seen.idle) / all < idleShareMin;
      pauseMs = isBusy
        ? Math.min(pauses.mostMs, pauseMs * pauses.factor)
        : Math.max(pauses.leastMs, pauseMs / pauses.factor);
      seen = now;
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
