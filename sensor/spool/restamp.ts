/** Stamps an upload again: what a wrong clock called one minute is by the right one another. Its kinds of records move it. */
import { type ClockStamp, clockStepMs, setClockFrom } from '#sensor/host-time/index.ts';
import type { StampedBy } from './stamps.ts';

/** By how much an upload's times are to be moved. */
export interface Shift {
  /** Whole minutes. */
  seconds: number;
  /** The clocks differ by more than whole minutes, so that minutes of one are cut out of two of the other. */
  isUneven: boolean;
  /** The first minute that the wrong clock stamped. */
  since: number;
  /** No gap reaches further. */
  lastMinute: number;
  /** Nothing is known of the clock that stamped it, as of an older sensor's. */
  isUnknown: boolean;
}

/** What the queue knows of an upload. */
export interface Stamped {
  by: StampedBy;
  /** The last minute that it tells of. */
  lastMinute: number;
  hasMinutes: boolean;
  /** The last minute of all that wait and were stamped by the same clock. */
  newestOfClock(): number;
}

/**
 * How an upload moves to the clock of now, which is right; null: it stays. Of the same boot the uptime tells exactly, and of
 * another one in which the monitor told the time. Of a boot without that only what can't be is moved, a minute that has not come or one before clocks were set: behind all that
 * waits, just before this boot, where it is at the latest.
 */
export function findShift(
  upload: Stamped,
  clock: ClockStamp,
  nowMs: number,
  rightClocks: readonly ClockStamp[] = [],
): Shift | null {
  const { by } = upload;
  const thisMinute = Math.floor(nowMs / 60_000) * 60;
  const isSameBoot = by.bootId !== '' && by.bootId === clock.bootId;
  const right = isSameBoot ? clock : rightClocks.find((one) => one.bootId === by.bootId);
  if (right) {
    const exactMs = right.offsetMs - by.offsetMs;
    const seconds = Math.round(exactMs / 60_000) * 60;
    const isUneven = Math.abs(exactMs - seconds * 1000) >= clockStepMs;
    return seconds === 0
      ? null
      : { seconds, isUneven, since: by.since, lastMinute: thisMinute, isUnknown: false };
  }
  const isUnset = upload.lastMinute < setClockFrom && thisMinute >= setClockFrom;
  if (upload.lastMinute <= thisMinute && !isUnset) return null;
  const bootMinute = Math.floor(clock.offsetMs / 60_000) * 60;
  const end = by.bootId === '' || clock.bootId === '' ? thisMinute : Math.min(bootMinute, thisMinute);
  // A gap alone is cut: how far it really reached, the minutes that were collected tell.
  const seconds = upload.hasMinutes ? end - 60 - upload.newestOfClock() : 0;
  return { seconds, isUneven: true, since: by.since, lastMinute: end - 60, isUnknown: by.bootId === '' };
}
