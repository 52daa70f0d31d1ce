/** Commits the minutes of a timeline, and the gaps between them, stamped by its clock. */
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { type MinuteRange, missingBetween } from '#sensor/spool/index.ts';
import { type Commit, type Commits, gapOf } from './commits.ts';
import type { Reported, Timeline } from './timelines.ts';

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
    const { bootId, commits, settle } = this.#deps;
    const stampedBy = { bootId, offsetMs: timeline.offsetMs, since };
    const settled = { ...one, minutes: settle(one.minutes) };
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
