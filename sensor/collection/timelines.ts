/**
 * Minutes by the clock that stamped them. A clock that is set begins a timeline: what was heard before keeps the old
 * clock's minutes, what is heard afterwards gets the new one's, and the same minute of both is two things.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { GapReason, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs } from '#sensor/host-time/index.ts';
import { joinParts } from './merge-minutes.ts';

export interface Reported {
  minute: TelemetryMinute;
  reason: GapReason | null;
}

/** One stretch of a clock that was not set. */
export interface Timeline {
  /** Wall time minus uptime; follows a clock that is slewed. */
  offsetMs: number;
  /** The first minute that is stamped by this clock. */
  since: number;
  /** The first minute that is not committed. */
  cursor: number;
  pending: Map<number, Map<string, Reported>>;
}

/** Where a capture stands. */
export interface CaptureProgress {
  isListening: boolean;
  timeline: Timeline | null;
  /** The first minute that may still be reported. */
  nextMinute: number;
}

export const minuteOf = (ms: number) => startOfMinuteMs(ms) / 1000;

export function createTimeline(offsetMs: number, since: number): Timeline {
  return { offsetMs, since, cursor: since, pending: new Map() };
}

/** The timeline whose clock shows this offset, the newest first. */
export function findTimeline(timelines: readonly Timeline[], offsetMs: number): Timeline | undefined {
  return timelines.findLast((one) => Math.abs(one.offsetMs - offsetMs) < clockStepMs);
}

/** Keeps a report until its minute is committed. Parts of one capture's minute add, and the minute is partial. */
export function keepReport(timeline: Timeline, { minute, reason }: Reported): void {
  const reports = timeline.pending.get(minute.minute) ?? new Map<string, Reported>();
  timeline.pending.set(minute.minute, reports);
  const earlier = reports.get(minute.capture);
  reports.set(
    minute.capture,
    earlier
      ? { minute: joinParts(earlier.minute, minute), reason: earlier.reason ?? reason ?? 'capture_failed' }
      : { minute, reason },
  );
}

/**
 * The last minute of those from the cursor on that were not reported and will not be. A capture that still uses the former
 * clock may report from the cursor on.
 */
export function silentThrough(
  timeline: Timeline,
  captures: Iterable<CaptureProgress>,
  isPast: (other: Timeline) => boolean,
  limit: number,
): number {
  let first = limit;
  for (const minute of timeline.pending.keys()) first = Math.min(first, minute);
  for (const one of captures) {
    if (!one.isListening || one.timeline === null) continue;
    if (one.timeline === timeline) first = Math.min(first, one.nextMinute);
    else if (isPast(one.timeline)) first = Math.min(first, timeline.cursor);
  }
  return first - 60;
}

/** True when no capture will report the minute at the cursor any more. */
export function isComplete(
  timeline: Timeline,
  captures: Iterable<CaptureProgress>,
  isPast: (other: Timeline) => boolean,
): boolean {
  for (const one of captures) {
    if (!one.isListening || one.timeline === null) continue;
    if (one.timeline === timeline ? one.nextMinute <= timeline.cursor : isPast(one.timeline)) return false;
  }
  return true;
}
