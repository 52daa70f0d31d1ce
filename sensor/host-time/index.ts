/**
 * The host's clocks side by side: the wall clock names minutes and may be set; uptime only counts, sleep included.
 *
 * Their difference tells a clock that was set from time that passed, also across restarts of the sensor: as long as the
 * boot is the same, a time that was stamped by a wrong clock can be stamped again by the right one.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '#common/clock/index.ts';

export { createMonitorTime, type MonitorTime } from './monitor-time.ts';

/** A clock that shows less was not set yet (2025). */
export const setClockFrom = 1_735_689_600;
/** A smaller change between two looks is the time daemon's ordinary work. */
export const clockStepMs = 1500;
/** Two clocks that differ by no more agree. */
export const clocksAgreeMs = 300_000;

/** Both clocks at one moment. */
export interface Moment {
  /** Milliseconds since 1970. */
  wallMs: number;
  /** Milliseconds since the host started. */
  uptimeMs: number;
}

export interface HostTime {
  /** Names this run of the host's kernel; blank where it can't be told. */
  bootId: string;
  read(): Moment;
}

/** By which clock something was stamped. */
export interface ClockStamp {
  bootId: string;
  /** Wall time minus uptime. */
  offsetMs: number;
}

const readGapMaxMs = 50;
const readsMax = 5;

/** The clocks of this machine; `clock` and `uptimeMs` for tests. */
export function createHostTime(
  clock: Pick<Clock, 'nowMs'>,
  uptimeMs: () => number = () => uptime() * 1000,
  bootId: string = readBootId(),
): HostTime {
  return {
    bootId,
    read() {
      for (let reads = 1; ; reads += 1) {
        const beforeMs = uptimeMs();
        const wallMs = clock.nowMs();
        const afterMs = uptimeMs();
        // A process that is stopped between two reads would take the pause for a clock that was set.
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
