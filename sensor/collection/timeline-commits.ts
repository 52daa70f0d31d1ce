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

  /** Commits a gap of all captures. */
  commitGap(timeline: Timeline, range: MinuteRange, reason: GapReason, since = timeline.since): void {
    this.commit(timeline, { minutes: [], gaps: [gapOf(...range, '', reason)], range }, since);
  }

  /** Commits the minute's reports, and a gap for each capture without a complete one. */
  commitMinute(timeline: Timeline, minute: number): void {
    const reports = timeline.pending.get(minute) ?? new Map<string, Reported>();
    timeline.pending.delete(minute);
    const minutes = [...reports.values()].map((reported) => reported.minute);
    this.commit(timeline, { minutes, gaps: this.#gapsOf(minute, reports), range: [minute, minute] });
  }

  /** Commits what a killed sensor left of one minute: a part of it, of each capture. */
  commitRecovered(timeline: Timeline, minutes: TelemetryMinute[], since: number): void {
    const { minute } = minutes[0]!;
    const names = new Set([...this.#deps.captures, ...minutes.map(({ capture }) => capture)]);
    const gaps = [...names].map((name) => gapOf(minute, minute, name, 'sensor_down'));
    this.commit(timeline, { minutes, gaps, range: [minute, minute] }, since);
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
