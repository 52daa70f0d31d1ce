/**
 * Collects the reports of the captures for each minute and commits them to the spool in order.
 *
 * Pure: each call brings the time. A minute that is not known to be complete gets a gap, and every report is committed
 * once, for any behaviour of the clock. Minutes that a clock step skipped get no gap, because nothing shows that they
 * passed; if they come later, they are collected as usual.
 */
import type { Reporter } from '#common/reporter/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { DroppedCounters, TelemetryHost, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs, type Moment, offsetOf } from '#sensor/host-time/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import { type AnyRecordSource, type Commits, createCommits, gapOf } from './commits.ts';
import { Downtime } from './downtime.ts';
import type { KernelCounts } from './kernel-counts.ts';
import type { LocalWindow } from './merge.ts';
import {
  type CaptureProgress,
  createTimeline,
  findTimeline,
  isComplete,
  isoMinute,
  keepReport,
  minuteOf,
  silentThrough,
  type Timeline,
  TimelineCommits,
} from './timelines.ts';
import { UnfinishedMinutes } from './unfinished-minutes.ts';

/** How late the reports of a minute may come. */
const latenessMs = 2000;
/** Calls of `tick` before the minute of a listening capture is given up. */
const ticksMax = 60;

export interface MinuteCollectorOptions {
  captures: readonly string[];
  spool: Pick<Spool, 'append' | 'coveredBefore' | 'lastCommit' | 'lastStampedBy'>;
  reporter: Reporter;
  /** Id of the kernel boot that the uptime belongs to; absent when stamps need not outlive the process. */
  bootId?: string;
  /** Keeps the running minute for the next start; absent where minutes are only displayed. */
  stateDirectory?: string;
  /** See `KernelCounts`; by default the kernel counts nothing. */
  count?: KernelCounts['count'];
  /** What the filter at a capture dropped in a minute, by address; nothing by default. */
  dropped?(capture: string, minute: number): ReadonlyMap<string, DroppedCounters>;
  /** What is committed of the reports of one minute; all of it by default. */
  settle?(minutes: TelemetryMinute[]): TelemetryMinute[];
  /** Records of other parts for the next commit. */
  records?: readonly AnyRecordSource[];
  /** Called after each commit. */
  onCommitted(): void;
}

export class MinuteCollector {
  readonly #reporter: Reporter;
  readonly #progress: ReadonlyMap<string, CaptureProgress>;
  readonly #commits: Commits;
  readonly #timelineCommits: TimelineCommits;
  readonly #downtime: Downtime;
  readonly #spool: MinuteCollectorOptions['spool'];
  readonly #unfinished: UnfinishedMinutes;
  readonly #bootId: string;
  /** Unfinished timelines, the newest last. */
  #timelines: Timeline[] = [];
  /** The minute in which the sensor started, by the clock of then. */
  #firstMinute = 0;
  /** Uptime of the last tick. */
  #lastTickMs = 0;
  #ticksWaited = 0;

  constructor(options: MinuteCollectorOptions) {
    const { captures, spool, reporter, bootId = '', stateDirectory = null } = options;
    this.#reporter = reporter;
    this.#bootId = bootId;
    this.#spool = spool;
    this.#unfinished = new UnfinishedMinutes({ stateDirectory, spool, reporter });
    this.#progress = new Map(
      captures.map((name) => [name, { isListening: false, timeline: null, nextMinute: 0 }]),
    );
    this.#commits = createCommits(options);
    this.#timelineCommits = new TimelineCommits({
      commits: this.#commits,
      bootId,
      captures: [...this.#progress.keys()],
      count: (capture, minute, seen) => this.#count(options, capture, minute, seen),
      onCounted: (part) => this.#unfinished.noteCommitted(part),
      settle: (minutes) => options.settle?.(minutes) ?? minutes,
      withDropped: (minute) => this.#withDropped(options, minute),
      isFirstMinute: (minute) => minute === this.#firstMinute,
    });
    this.#downtime = new Downtime({ spool, reporter, bootId, commits: this.#timelineCommits });
  }

  /** True while the disk accepts nothing. */
  isPaused(): boolean {
    return this.#commits.isPaused();
  }

  #count(
    { count, spool }: MinuteCollectorOptions,
    capture: string,
    minute: number,
    seen: TelemetryMinute | null,
  ): TelemetryMinute | null {
    const committed = this.#unfinished.committedOf(capture, minute);
    // A part was committed, and it is not known which.
    if (!committed && spool.coveredBefore(minute + 60) === minute) return null;
    return count?.(capture, minute, seen, committed) ?? null;
  }

  #withDropped({ dropped, spool }: MinuteCollectorOptions, one: TelemetryMinute): TelemetryMinute {
    if (!dropped || one.role !== 'uplink') return one;
    const wasCommitted = spool.coveredBefore(one.minute + 60) === one.minute;
    const found = this.#unfinished.takeDropped(one, dropped(one.capture, one.minute), wasCommitted);
    if (found.size === 0) return one;
    const hosts = new Map<string, TelemetryHost>(one.hosts.map((row) => [row.address, row]));
    for (const [address, counters] of found) {
      const none = { address, isLocal: true, rxBytes: 0, txBytes: 0, packets: 0, deviceKey: '' };
      hosts.set(address, { ...(hosts.get(address) ?? none), dropped: counters });
    }
    return { ...one, hosts: [...hosts.values()] };
  }

  /** Starts at this time and commits the gap since the last covered minute. */
  start(now: Moment): void {
    this.#firstMinute = minuteOf(now.wallMs);
    this.#lastTickMs = now.uptimeMs;
    const first = createTimeline(offsetOf(now), this.#firstMinute);
    this.#timelines = [first];
    const { seen: recovered, cut } = this.#unfinished.recover({
      bootId: this.#bootId,
      offsetMs: first.offsetMs,
    });
    for (const { minute, capture } of cut)
      this.#timelineCommits.commitGap(first, [minute, minute], 'sensor_down', this.#firstMinute, capture);
    const isOver = ({ minute }: TelemetryMinute) => minute < this.#firstMinute;
    // The sensor before ended in order within a minute that is over: its part was committed, the rest is the kernel's.
    const begun = new Set(this.#unfinished.committedBefore(this.#firstMinute).map(({ minute }) => minute));
    for (const minute of begun) this.#timelineCommits.commitRecovered(first, minute, [], minute);
    this.#downtime.nameAtStart(first, now, recovered.filter(isOver));
    for (const minute of recovered.filter((one) => !isOver(one)))
      keepReport(first, { minute, reason: 'sensor_down', isRecovered: true });
    this.#save();
  }

  /**
   * The capture listens from this time on, with this offset of its clock to the uptime; called again after each clock
   * step.
   */
  listening(capture: string, sinceMs: number, offsetMs: number): void {
    const one = this.#progress.get(capture);
    const timeline = findTimeline(this.#timelines, offsetMs) ?? this.#beginTimeline(offsetMs, sinceMs);
    if (one) Object.assign(one, { isListening: true, timeline, nextMinute: minuteOf(sinceMs) });
  }

  /** The capture stopped listening. */
  failed(capture: string): void {
    const one = this.#progress.get(capture);
    if (one) one.isListening = false;
  }

  /** A closed minute of a capture; `reason` says why it is incomplete. */
  report(minute: TelemetryMinute, reason: GapReason | null): void {
    const one = this.#progress.get(minute.capture);
    if (!one) return;
    const timeline = one.timeline ?? this.#current();
    one.nextMinute = Math.max(one.nextMinute, minute.minute + 60);
    if (minute.minute >= timeline.cursor && this.#timelines.includes(timeline)) {
      keepReport(timeline, { minute, reason });
      return;
    }
    this.#reporter.warn('a report comes after its minute was given up', { minute: isoMinute(minute.minute) });
    const gaps = [gapOf(minute.minute, minute.minute, minute.capture, reason ?? 'capture_failed')];
    const range = [minute.minute, minute.minute] as const;
    this.#timelineCommits.commit(timeline, { minutes: [minute], gaps, range });
  }

  /** A live window of a capture: what is left of its minute if the sensor is killed. */
  window(window: LocalWindow): void {
    const current = this.#current();
    const isCurrent = this.#progress.get(window.capture)?.timeline === current;
    if (isCurrent && minuteOf(window.startedAtMs) >= current.cursor) this.#unfinished.add(window);
  }

  /** Commits complete minutes. Call about twice a second. */
  tick(now: Moment): void {
    this.#commits.tick();
    this.#commitComplete(now);
    this.#save();
  }

  #commitComplete(now: Moment): void {
    const offsetMs = offsetOf(now);
    const isSame = Math.abs(this.#current().offsetMs - offsetMs) < clockStepMs;
    const timeline = isSame ? this.#current() : this.#beginTimeline(offsetMs, now.wallMs);
    timeline.offsetMs = offsetMs;
    this.#lastTickMs = now.uptimeMs;
    const limit = minuteOf(now.wallMs - latenessMs);
    if (!this.#finishPast()) return;
    while (timeline.cursor < limit && this.#advance(timeline, limit)) {
      // Continues until the clock or a missing report stops it.
    }
  }

  /** Commits all reports. */
  finish(): void {
    const before = this.#spool.lastCommit();
    for (const timeline of this.#timelines) this.#timelineCommits.flush(timeline);
    const { cursor, offsetMs } = this.#current();
    this.#commits.finish([cursor, cursor]);
    // Where the disk has no room, it has the running minute as it was, and nothing of that is committed.
    if (this.#commits.isPaused()) return;
    // The windows of the running minute are committed, and must not come again.
    if (this.#spool.lastCommit() !== before) this.#unfinished.clear();
    this.#unfinished.save({ bootId: this.#bootId, offsetMs });
  }

  #save(): void {
    const { cursor, offsetMs } = this.#current();
    this.#unfinished.dropBefore(cursor);
    this.#unfinished.save({ bootId: this.#bootId, offsetMs });
  }

  #current(): Timeline {
    return this.#timelines.at(-1)!;
  }

  /** The clock was set: starts a timeline. */
  #beginTimeline(offsetMs: number, wallMs: number): Timeline {
    const before = this.#current();
    // The captures report time that passed within a minute. A longer time since the last tick was a sleep.
    const passedMs = wallMs - offsetMs - this.#lastTickMs;
    const made = createTimeline(offsetMs, minuteOf(passedMs < 60_000 ? wallMs : wallMs - passedMs));
    this.#timelines.push(made);
    this.#unfinished.clear();
    this.#reporter.warn('the clock of this host was set', {
      by_seconds: Math.round((offsetMs - before.offsetMs) / 1000),
      minute: isoMinute(made.since),
    });
    this.#downtime.nameAtStep(made);
    return made;
  }

  /** Returns true when the previous clock is finished: every capture uses the new one, or the wait was long enough. */
  #finishPast(): boolean {
    while (this.#timelines.length > 1) {
      const oldest = this.#timelines[0]!;
      const captures = [...this.#progress.values()];
      const isLeft = captures.every((one) => !one.isListening || one.timeline !== oldest);
      if (!isLeft && ++this.#ticksWaited < ticksMax) return false;
      this.#ticksWaited = 0;
      this.#timelineCommits.flush(oldest);
      this.#timelines.shift();
    }
    return true;
  }

  /** Moves the cursor by one step. Returns false when it has to wait. */
  #advance(timeline: Timeline, limit: number): boolean {
    const captures = [...this.#progress.values()];
    const timelines = this.#timelines;
    const isPast = (other: Timeline) => timelines.indexOf(other) < timelines.indexOf(timeline);
    const silent = silentThrough(timeline, captures, isPast, limit);
    if (silent >= timeline.cursor) {
      // While a capture listens, minutes without a report mean that the host slept or the process was stopped.
      const reason = captures.some((one) => one.isListening) ? 'sensor_down' : 'capture_failed';
      this.#timelineCommits.commitGap(timeline, [timeline.cursor, silent], reason);
      timeline.cursor = silent + 60;
      return true;
    }
    if (!isComplete(timeline, captures, isPast)) {
      this.#ticksWaited += 1;
      if (this.#ticksWaited < ticksMax) return false;
      this.#reporter.error('a capture does not report, its minute is a gap', {
        minute: isoMinute(timeline.cursor),
      });
    }
    this.#ticksWaited = 0;
    this.#timelineCommits.commitMinute(timeline, timeline.cursor);
    timeline.cursor += 60;
    return true;
  }
}
