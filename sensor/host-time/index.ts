/**
 * The host's two clocks: the wall clock names minutes and may be set; uptime only advances, including sleep.
 *
 * A change of their difference is a clock step, also across restarts of the sensor: within the same boot, a time
 * stamped by a wrong clock can be corrected with the right one.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '#common/clock/index.ts';

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

export type MonitorTime = ReturnType<typeof createMonitorTime>;

/** An older answer is no longer used. */
const knownForMs = 7 * 86_400_000;

/**
 * The monitor's clock, from the `Date` of its answers, extrapolated with this host's uptime: a step of this host's
 * clock between two answers is detected at once.
 */
export function createMonitorTime(host: Pick<HostTime, 'read'>) {
  let known: { offsetMs: number; atMs: number } | null = null;
  return {
    /** Adds the `Date` header of the answer to a request that was sent at `sent`. */
    note(date: string | null, sent: Moment) {
      const toldMs = date === null ? Number.NaN : Date.parse(date);
      if (!Number.isFinite(toldMs)) return;
      const { uptimeMs } = host.read();
      // The header has whole seconds; the answer was created about half-way through the round trip.
      known = { offsetMs: toldMs + 500 - (sent.uptimeMs + uptimeMs) / 2, atMs: uptimeMs };
    },
    /**
     * How far a wall clock with this offset to the host's uptime is ahead of the monitor's; negative when behind. Null
     * while no answer had a time.
     */
    skewMs(offsetMs: number): number | null {
      if (known === null || host.read().uptimeMs - known.atMs > knownForMs) return null;
      return offsetMs - known.offsetMs;
    },
  };
}
