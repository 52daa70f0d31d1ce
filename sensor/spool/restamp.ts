/** Stamps an upload again: what a wrong clock called one minute is by the right one another. Bytes stay as they are. */
import type { TelemetryGap, TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import { type ClockStamp, clockStepMs, setClockFrom } from '#sensor/host-time/index.ts';
import { namesCommon } from './settle.ts';
import type { StampedBy } from './stamp-runs.ts';

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

/** The upload by the right clock. */
export function shiftUpload(upload: TelemetryUpload, shift: Shift, nowMs: number): TelemetryUpload {
  const byMs = shift.seconds * 1000;
  const sent = (ms: number) => (ms === 0 ? 0 : ms + byMs);
  const minutes = upload.minutes.map((one) => ({
    ...one,
    minute: one.minute + shift.seconds,
    usage: one.usage.map((row) => ({
      ...row,
      clientLastSentMs: sent(row.clientLastSentMs),
      serverLastSentMs: sent(row.serverLastSentMs),
    })),
  }));
  // What it has in common with others is settled by its new times.
  const isCommon = (gap: TelemetryGap) => upload.minutes.some(({ minute }) => namesCommon(gap, minute));
  const gaps = upload.gaps.filter((gap) => !isCommon(gap)).flatMap((gap) => shiftGap(gap, shift));
  if (shift.isUneven)
    for (const { minute, capture } of minutes)
      gaps.push({ fromMinute: minute, toMinute: minute, capture, reason: 'clock_step' });
  const inventory = upload.inventory && {
    ...upload.inventory,
    observedAtMs: Math.min(upload.inventory.observedAtMs + byMs, nowMs),
  };
  const probes = upload.probes?.map((one) => ({ ...one, minute: one.minute + shift.seconds }));
  return { ...upload, minutes, gaps, ...(inventory ? { inventory } : {}), ...(probes ? { probes } : {}) };
}

/** An end that an earlier clock told stays where it is; a gap that is empty by the right clock goes. */
function shiftGap(gap: TelemetryGap, shift: Shift): TelemetryGap[] {
  const moved = (minute: number) => (minute >= shift.since - 60 ? minute + shift.seconds : minute);
  const toMinute = Math.min(moved(gap.toMinute), shift.lastMinute);
  const fromMinute = moved(gap.fromMinute);
  if (fromMinute > toMinute) return [];
  // Older sensors told what a clock jumped over as one step. Nothing was heard of it, and what was takes its part back.
  const isJump = shift.isUnknown && gap.reason === 'clock_step' && fromMinute < toMinute;
  return [{ ...gap, fromMinute, toMinute, reason: isJump ? 'sensor_down' : gap.reason }];
}
