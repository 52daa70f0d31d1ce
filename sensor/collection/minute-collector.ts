/**
 * Collects the reports of the captures for each minute and commits them to the spool in order.
 *
 * Pure: each call brings the time. A minute that is not known to be complete gets a gap, and every report is committed
 * once, for any behaviour of the clock. Minutes that a clock step skipped get no gap, because nothing shows that they
 * passed; if they come later, they are collected as usual.
 */
import type { Reporter } from '#common/reporter/index.ts';
import type { GapReason, TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs, type Moment, offsetOf, setClockFrom } from '#sensor/host-time/index.ts';
import { type MinuteRange, missingBetween, type Spool } from '#sensor/spool/index.ts';
import { type Commit, createCommits, gapOf } from './commits.ts';
import type { AnyRecordSource } from './ready-records.ts';
import {
  type CaptureProgress,
  createTimeline,
  findTimeline,
  isComplete,
  keepReport,
  minuteOf,
  type Reported,
  silentThrough,
  type Timeline,
} from './timelines.ts';

/** How late the reports of a minute may come. */
const latenessMs = 2000;
/** Calls of `tick` before the minute of a listening capture is given up. */
const ticksMax = 60;

/** A difference above this means that the latest clock was behind; below it, that the previous one was ahead. */
const aheadMaxSeconds = 86_400;

export interface MinuteCollectorOptions {
  captures: readonly string[];
  spool: Pick<Spool, 'append' | 'isCovered' | 'coveredBefore' | 'lastCommit' | 'lastStampedBy'>;
  reporter: Reporter;
  /** Id of the kernel boot that the uptime belongs to; absent when stamps need not outlive the process. */
  bootId?: string;
  /** Records of other parts for the next commit. */
  records?: readonly AnyRecordSource[];
  /** Called after each commit. */
  onCommitted(): void;
}

export interface MinuteCollector {
  /** Starts at this time and commits the gap since the last covered minute. */
  start(now: Moment): void;
  /**
   * The capture listens from this time on, with this offset of its clock to the uptime; called again after each clock
   * step.
   */
  listening(capture: string, sinceMs: number, offsetMs: number): void;
  /** The capture stopped listening. */
  failed(capture: string): void;
  /** A closed minute of a capture; `reason` says why it is incomplete. */
  report(minute: TelemetryMinute, reason: GapReason | null): void;
  /** Commits complete minutes. Call about twice a second. */
  tick(now: Moment): void;
  /** Commits all reports. */
  finish(): void;
  /** True while the disk accepts nothing. */
  isPaused(): boolean;
}

/** Creates a collector for these captures. */
export function createMinuteCollector(options: MinuteCollectorOptions): MinuteCollector {
  const { spool, reporter, bootId = '' } = options;
  const progress = new Map<string, CaptureProgress>(
    options.captures.map((name) => [name, { isListening: false, timeline: null, nextMinute: 0 }]),
  );
  const commits = createCommits(options);
  /** Unfinished timelines, the newest last. */
  let timelines: Timeline[] = [];
  let started: Moment = { wallMs: 0, uptimeMs: 0 };
  let lastTickMs = 0;
  let ticksWaited = 0;
  /** The clock was not set when the sensor started, so the length of the downtime is unknown. */
  let isDownUnnamed = false;

  const current = () => timelines.at(-1)!;
  const isPast = (of: Timeline) => (other: Timeline) => timelines.indexOf(other) < timelines.indexOf(of);

  function commit(timeline: Timeline, one: Omit<Commit, 'stampedBy'>, since = timeline.since): void {
    const stampedBy = { bootId, offsetMs: timeline.offsetMs, since };
    commits.commit(bootId === '' ? one : { ...one, stampedBy });
  }

  function commitGap(timeline: Timeline, range: MinuteRange, capture: string, reason: GapReason): void {
    commit(timeline, { minutes: [], gaps: [gapOf(...range, capture, reason)], range });
  }

  function gapsOf(minute: number, reports: ReadonlyMap<string, Reported>): TelemetryGap[] {
    const gaps: TelemetryGap[] = [];
    for (const name of progress.keys()) {
      const reported = reports.get(name);
      if (!reported) {
        gaps.push(gapOf(minute, minute, name, 'capture_failed'));
      } else if (reported.minute.observedMs < 60_000 || reported.reason) {
        const assumed = minute === minuteOf(started.wallMs) ? 'sensor_down' : 'capture_failed';
        gaps.push(gapOf(minute, minute, name, reported.reason ?? assumed));
      }
    }
    return gaps;
  }

  function commitMinute(timeline: Timeline, minute: number): void {
    const reports = timeline.pending.get(minute) ?? new Map<string, Reported>();
    timeline.pending.delete(minute);
    const minutes = [...reports.values()].map((reported) => reported.minute);
    commit(timeline, { minutes, gaps: gapsOf(minute, reports), range: [minute, minute] });
  }

  /** Moves the cursor by one step. Returns false when it has to wait. */
  function advance(timeline: Timeline, limit: number): boolean {
    const captures = [...progress.values()];
    const silent = silentThrough(timeline, captures, isPast(timeline), limit);
    if (silent >= timeline.cursor) {
      // While a capture listens, minutes without a report mean that the host slept or the process was stopped.
      const reason = captures.some((one) => one.isListening) ? 'sensor_down' : 'capture_failed';
      commitGap(timeline, [timeline.cursor, silent], '', reason);
      timeline.cursor = silent + 60;
      return true;
    }
    if (!isComplete(timeline, captures, isPast(timeline))) {
      ticksWaited += 1;
      if (ticksWaited < ticksMax) return false;
      reporter.error('a capture does not report, its minute is a gap', {
        minute: isoMinute(timeline.cursor),
      });
    }
    ticksWaited = 0;
    commitMinute(timeline, timeline.cursor);
    timeline.cursor += 60;
    return true;
  }

  /** Commits the reports of a timeline, and the gaps between its minutes. */
  function flush(timeline: Timeline): void {
    for (const minute of [...timeline.pending.keys()].sort((a, b) => a - b)) {
      const missing = missingBetween(timeline.cursor - 60, minute);
      if (missing) commitGap(timeline, missing, '', 'capture_failed');
      commitMinute(timeline, minute);
      timeline.cursor = minute + 60;
    }
  }

  /** Returns true when the previous clock is finished: every capture uses the new one, or the wait was long enough. */
  function finishPast(): boolean {
    while (timelines.length > 1) {
      const oldest = timelines[0]!;
      const isLeft = [...progress.values()].every((one) => !one.isListening || one.timeline !== oldest);
      if (!isLeft && ++ticksWaited < ticksMax) return false;
      ticksWaited = 0;
      flush(oldest);
      timelines.shift();
    }
    return true;
  }

  /** The clock was set: starts a timeline. */
  function begin(offsetMs: number, wallMs: number): Timeline {
    const before = current();
    // The captures report time that passed within a minute. A longer time since the last tick was a sleep.
    const passedMs = wallMs - offsetMs - lastTickMs;
    const made = createTimeline(offsetMs, minuteOf(passedMs < 60_000 ? wallMs : wallMs - passedMs));
    timelines.push(made);
    reporter.warn('the clock of this host was set', {
      by_seconds: Math.round((offsetMs - before.offsetMs) / 1000),
      minute: isoMinute(made.since),
    });
    if (isDownUnnamed && made.since >= setClockFrom) {
      isDownUnnamed = false;
      const from = minuteOf(started.uptimeMs + offsetMs);
      nameDown(made, missingBetween(committedBefore(from), from), from);
    }
    return made;
  }

  /**
   * The last committed minute before this one. Minutes that a clock ahead stamped before the latest commit do not
   * count: they may be moved, and otherwise the spool leaves them out of the gap.
   */
  function committedBefore(minute: number): number | null {
    const covered = spool.coveredBefore(minute);
    const last = spool.lastStampedBy();
    if (covered === null || last === null) return covered;
    const aheadSeconds = covered - last.throughMinute;
    return aheadSeconds > 0 && aheadSeconds <= aheadMaxSeconds ? last.throughMinute : covered;
  }

  /** `since`: the first minute of this clock; an earlier clock reported the time before. */
  function nameDown(timeline: Timeline, missing: MinuteRange | null, since: number): void {
    if (!missing) return;
    const [from, to] = missing;
    reporter.warn('minutes were missed while the sensor was down', {
      from: isoMinute(from),
      to: isoMinute(to),
    });
    commit(timeline, { minutes: [], gaps: [gapOf(from, to, '', 'sensor_down')], range: missing }, since);
  }

  return {
    isPaused: () => commits.isPaused(),
    start(now) {
      started = now;
      lastTickMs = now.uptimeMs;
      const thisMinute = minuteOf(now.wallMs);
      const first = createTimeline(offsetOf(now), thisMinute);
      timelines = [first];
      const last = spool.lastStampedBy();
      const setByMs = last && last.bootId === bootId ? first.offsetMs - last.offsetMs : null;
      if (last && setByMs !== null && Math.abs(setByMs) >= clockStepMs) {
        // The clock was set meanwhile. In the present clock the last commit ended at `endedMs`, so the gap starts with
        // that minute, which no commit covers by this clock.
        const endedMs = (last.throughMinute + 60) * 1000 + setByMs;
        first.since = Math.min(thisMinute, minuteOf(endedMs));
        nameDown(first, missingBetween(first.since - 60, thisMinute), first.since);
        return;
      }
      isDownUnnamed = thisMinute < setClockFrom;
      if (last && setByMs !== null) {
        nameDown(first, missingBetween(last.throughMinute, thisMinute), last.throughMinute + 60);
      } else nameDown(first, missingBetween(committedBefore(thisMinute), thisMinute), thisMinute);
      // Stopped and started within one minute: the first part is committed, with a gap that marks it as partial.
      const isCommitted =
        setByMs === null ? !last && spool.isCovered(thisMinute) : last!.throughMinute >= thisMinute;
      if (isCommitted) first.cursor += 60;
    },

    listening(capture, sinceMs, offsetMs) {
      const timeline = findTimeline(timelines, offsetMs) ?? begin(offsetMs, sinceMs);
      progress.set(capture, { isListening: true, timeline, nextMinute: minuteOf(sinceMs) });
    },

    failed(capture) {
      const one = progress.get(capture);
      if (one) one.isListening = false;
    },

    report(minute, reason) {
      const one = progress.get(minute.capture);
      if (!one) return;
      const timeline = one.timeline ?? current();
      one.nextMinute = Math.max(one.nextMinute, minute.minute + 60);
      if (minute.minute >= timeline.cursor && timelines.includes(timeline)) {
        keepReport(timeline, { minute, reason });
        return;
      }
      // The rest of a minute whose first part was committed by the previous run.
      if (minute.minute === minuteOf(started.wallMs) && timeline === timelines[0]) return;
      reporter.warn('a report comes after its minute was given up', { minute: isoMinute(minute.minute) });
      const gaps = [gapOf(minute.minute, minute.minute, minute.capture, reason ?? 'capture_failed')];
      commit(timeline, { minutes: [minute], gaps, range: [minute.minute, minute.minute] });
    },

    tick(now) {
      commits.tick();
      const offsetMs = offsetOf(now);
      const isSame = Math.abs(current().offsetMs - offsetMs) < clockStepMs;
      const timeline = isSame ? current() : begin(offsetMs, now.wallMs);
      timeline.offsetMs = offsetMs;
      lastTickMs = now.uptimeMs;
      const limit = minuteOf(now.wallMs - latenessMs);
      if (!finishPast()) return;
      while (timeline.cursor < limit && advance(timeline, limit)) {
        // Continues until the clock or a missing report stops it.
      }
    },

    finish() {
      for (const timeline of timelines) flush(timeline);
      const { cursor } = current();
      commits.finish([cursor, cursor]);
    },
  };
}

function isoMinute(minute: number): string {
  return new Date(minute * 1000).toISOString().slice(0, 16);
}
