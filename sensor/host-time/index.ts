/**
 * The host's two clocks: the wall clock names minutes and may be set; uptime only advances, including sleep.
 *
 * A change of their difference is a clock step, also across restarts of the sensor: within the same boot, a time
 * stamped by a wrong clock can be corrected with the right one.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '#common/clock/index.ts';

export { createMonitorTime, type MonitorTime } from './monitor-time.ts';

/** A clock below this time was never set (2025). */
export const setClockFrom = 1_735_689_600;
/** Smaller changes between two looks are normal corrections by the time daemon. */
export const clockStepMs = 1500;
/** Clocks with at most this difference agree. */
export const clocksAgreeMs = 300_000;

/** The clock that stamped something. */
export interface ClockStamp {
  bootId: string;
  /** Wall time minus uptime. */
  offsetMs: number;
}

const readGapMaxMs = 50;
const readsMax = 5;

/** Both clocks at the same moment. */
export interface Moment {
  /** Milliseconds since 1970. */
  wallMs: number;
  /** Milliseconds since the host started. */
  uptimeMs: number;
}

export type HostTime = ReturnType<typeof createHostTime>;

/** The clocks of this machine; `clock` and `uptimeMs` for tests. */
export function createHostTime(
  clock: Pick<Clock, 'nowMs'>,
  uptimeMs: () => number = () => uptime() * 1000,
  bootId: string = readBootId(),
) {
  return {
    /** Id of this kernel boot; blank when unknown. */
    bootId,
    read(): Moment {
      for (let reads = 1; ; reads += 1) {
        const beforeMs = uptimeMs();
        const wallMs = clock.nowMs();
        const afterMs = uptimeMs();
        // A process that was stopped between two reads would see the pause as a clock step.
        if (afterMs - beforeMs <= readGapMaxMs || reads === readsMax) return { wallMs, uptimeMs: afterMs };
      }
    },
  };
}

/** Wall time minus uptime. */
export function offsetOf({ wallMs, uptimeMs }: Moment): number {
  return wallMs - uptimeMs;
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
