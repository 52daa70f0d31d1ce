/**
 * Minutes by the clock that stamped them. Each clock step begins a new timeline: earlier frames keep the minutes of the
 * old clock, later frames get those of the new one, and a minute that occurs in both is kept twice.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs } from '#sensor/host-time/index.ts';
import { type MinuteRange, missingBetween } from '#sensor/spool/index.ts';
import { type Commit, type Commits, gapOf } from './commits.ts';
import { joinParts } from './merge.ts';

interface Reported {
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

// Commits the minutes of a timeline, and the gaps between them, stamped by its clock.

interface TimelineCommitsDeps {
  commits: Commits;
  /** Id of the kernel boot; empty when stamps need not outlive the process. */
  bootId: string;
  captures: readonly string[];
  /** See `KernelCounts`. */
  count(capture: string, minute: number, seen: TelemetryMinute | null): TelemetryMinute | null;
  /** This is committed, as the kernel counted it; if it is a part of a minute, the rest comes without it. */
  onCounted(minute: TelemetryMinute): void;
  /** What is committed of the reports of one minute. */
  settle(minutes: TelemetryMinute[]): TelemetryMinute[];
  /** The minute with what the filter at its uplink dropped in it and was not committed before. */
  withDropped(minute: TelemetryMinute): TelemetryMinute;
  /** True for the minute in which the sensor started. */
  isFirstMinute(minute: number): boolean;
}

export class TimelineCommits {
  readonly #deps: TimelineCommitsDeps;

  constructor(deps: TimelineCommitsDeps) {
    this.#deps = deps;
  }

  /** `since`: the first minute of the timeline's clock. */
  commit(timeline: Timeline, one: Omit<Commit, 'stampedBy'>, since = timeline.since): void {
    const { bootId, commits, settle, withDropped } = this.#deps;
    const stampedBy = { bootId, offsetMs: timeline.offsetMs, since };
    const settled = { ...one, minutes: settle(one.minutes).map(withDropped) };
    commits.commit(bootId === '' ? settled : { ...settled, stampedBy });
  }

  /** Commits a gap of all captures, or of one. */
  commitGap(
    timeline: Timeline,
    range: MinuteRange,
    reason: GapReason,
    since = timeline.since,
    capture = '',
  ): void {
    this.commit(timeline, { minutes: [], gaps: [gapOf(...range, capture, reason)], range }, since);
  }

  /** Commits the minute's reports, and a gap for each capture without a complete one. */
  commitMinute(timeline: Timeline, minute: number): void {
    const reports = timeline.pending.get(minute) ?? new Map<string, Reported>();
    timeline.pending.delete(minute);
    const counted = new Set<string>();
    for (const name of this.#deps.captures) {
      const whole = this.#deps.count(name, minute, reports.get(name)?.minute ?? null);
      if (!whole) continue;
      // Of a minute that is not over, the rest comes with the next start, or the gap that it is.
      counted.add(name);
      reports.set(name, { minute: whole, reason: null });
      this.#deps.onCounted(whole);
    }
    const minutes = [...reports.values()].map((reported) => reported.minute);
    const gaps = this.#gapsOf(minute, reports).filter(({ capture }) => !counted.has(capture));
    this.commit(timeline, { minutes, gaps, range: [minute, minute] });
  }

  /** Commits what is left of one minute without a sensor: what a killed one saw, or what the kernel counted. */
  commitRecovered(
    timeline: Timeline,
    minute: number,
    parts: readonly TelemetryMinute[],
    since: number,
  ): void {
    const seen = new Map(parts.map((part) => [part.capture, part]));
    const minutes: TelemetryMinute[] = [];
    const gaps: TelemetryGap[] = [];
    for (const name of new Set([...this.#deps.captures, ...seen.keys()])) {
      const part = seen.get(name) ?? null;
      const whole = this.#deps.count(name, minute, part);
      const known = whole ?? part;
      if (known) minutes.push(known);
      if (!whole) gaps.push(gapOf(minute, minute, name, 'sensor_down'));
    }
    this.commit(timeline, { minutes, gaps, range: [minute, minute] }, since);
  }

  /** True where the kernel counted this minute of a capture. */
  isCounted(minute: number): boolean {
    return this.#deps.captures.some((name) => this.#deps.count(name, minute, null) !== null);
  }

  /** Commits the reports of a timeline, and the gaps between its minutes. */
  flush(timeline: Timeline): void {
    for (const minute of [...timeline.pending.keys()].sort((a, b) => a - b)) {
      const missing = missingBetween(timeline.cursor - 60, minute);
      if (missing) this.commitGap(timeline, missing, 'capture_failed');
      this.commitMinute(timeline, minute);
      timeline.cursor = minute + 60;
    }
  }

  #gapsOf(minute: number, reports: ReadonlyMap<string, Reported>): TelemetryGap[] {
    const gaps: TelemetryGap[] = [];
    // One that a killed sensor had may not be set any more.
    for (const name of new Set([...this.#deps.captures, ...reports.keys()])) {
      const reported = reports.get(name);
      if (!reported) {
        gaps.push(gapOf(minute, minute, name, 'capture_failed'));
      } else if (reported.minute.observedMs < 60_000 || reported.reason) {
        const assumed = this.#deps.isFirstMinute(minute) ? 'sensor_down' : 'capture_failed';
        gaps.push(gapOf(minute, minute, name, reported.reason ?? assumed));
      }
    }
    return gaps;
  }
}
