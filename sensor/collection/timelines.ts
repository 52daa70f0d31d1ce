/**
 * Minutes by the clock that stamped them. Each clock step begins a new timeline: earlier frames keep the minutes of the
 * old clock, later frames get those of the new one, and a minute that occurs in both is kept twice.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs } from '#sensor/host-time/index.ts';
import { joinParts } from './merge-minutes.ts';

export interface Reported {
  minute: TelemetryMinute;
  reason: GapReason | null;
  /** What a killed sensor left of it: it has no owners of addresses. */
  isRecovered?: true;
}

/** A period between two clock steps. */
export interface Timeline {
  /** Wall time minus uptime; follows a slewed clock. */
  offsetMs: number;
  /** The first minute of this clock. */
  since: number;
  /** The first minute that is not committed. */
  cursor: number;
  pending: Map<number, Map<string, Reported>>;
}

/** Progress of a capture. */
export interface CaptureProgress {
  isListening: boolean;
  timeline: Timeline | null;
  /** The first minute that may still be reported. */
  nextMinute: number;
}

export const minuteOf = (ms: number) => startOfMinuteMs(ms) / 1000;

/** A minute for the log. */
export function isoMinute(minute: number): string {
  return new Date(minute * 1000).toISOString().slice(0, 16);
}

export function createTimeline(offsetMs: number, since: number): Timeline {
  return { offsetMs, since, cursor: since, pending: new Map() };
}

/** The newest timeline whose clock has this offset. */
export function findTimeline(timelines: readonly Timeline[], offsetMs: number): Timeline | undefined {
  return timelines.findLast((one) => Math.abs(one.offsetMs - offsetMs) < clockStepMs);
}

/** Keeps a report until its minute is committed. Parts of one capture's minute add up to a partial minute. */
export function keepReport(timeline: Timeline, reported: Reported): void {
  const { minute, reason } = reported;
  const reports = timeline.pending.get(minute.minute) ?? new Map<string, Reported>();
  timeline.pending.set(minute.minute, reports);
  const earlier = reports.get(minute.capture);
  reports.set(
    minute.capture,
    earlier
      ? {
          minute: joinParts(earlier.minute, minute, !earlier.isRecovered),
          reason: earlier.reason ?? reason ?? 'capture_failed',
        }
      : reported,
  );
}

/**
 * The last of the minutes from the cursor on that have no report and will get none. A capture that still uses the
 * previous clock may report from the cursor on.
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

/** True when no capture will still report the minute at the cursor. */
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
