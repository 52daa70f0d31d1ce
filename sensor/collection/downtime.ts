/**
 * Names the minutes for which the sensor was down: from its last commit to its start, by the clock of now. When that clock
 * was never set, the length of the downtime is unknown until it is.
 */
import type { Reporter } from '#common/reporter/index.ts';
import { clockStepMs, type Moment, setClockFrom } from '#sensor/host-time/index.ts';
import { type CommittedBy, type MinuteRange, missingBetween, type Spool } from '#sensor/spool/index.ts';
import type { TimelineCommits } from './timeline-commits.ts';
import { isoMinute, minuteOf, type Timeline } from './timelines.ts';

/** A difference above this means that the latest clock was behind; below it, that the previous one was ahead. */
const aheadMaxSeconds = 86_400;

export interface DowntimeDeps {
  spool: Pick<Spool, 'coveredBefore' | 'lastStampedBy'>;
  commits: TimelineCommits;
  reporter: Reporter;
  /** As in `MinuteCollectorOptions`. */
  bootId: string;
}

export class Downtime {
  readonly #deps: DowntimeDeps;
  /** Uptime of a start by a clock that was not set, while its gap is not committed. */
  #unnamedStartMs: number | null = null;

  constructor(deps: DowntimeDeps) {
    this.#deps = deps;
  }

  /** The sensor starts, with this timeline: commits the gap since the last covered minute. */
  nameAtStart(first: Timeline, now: Moment): void {
    const { spool, bootId } = this.#deps;
    const thisMinute = minuteOf(now.wallMs);
    const last = spool.lastStampedBy();
    const isSameBoot = last !== null && last.bootId === bootId;
    if (isSameBoot && Math.abs(first.offsetMs - last.offsetMs) >= clockStepMs) {
      this.#nameAcrossStep(first, thisMinute, last);
      return;
    }
    if (thisMinute < setClockFrom) this.#unnamedStartMs = now.uptimeMs;
    if (isSameBoot)
      this.#name(first, missingBetween(last.throughMinute, thisMinute), last.throughMinute + 60);
    else this.#name(first, missingBetween(this.#committedBefore(thisMinute), thisMinute), thisMinute);
  }

  /** The clock was set: commits the gap of a start before that. */
  nameAtStep(made: Timeline): void {
    if (this.#unnamedStartMs === null || made.since < setClockFrom) return;
    const from = minuteOf(this.#unnamedStartMs + made.offsetMs);
    this.#unnamedStartMs = null;
    this.#name(made, missingBetween(this.#committedBefore(from), from), from);
  }

  /**
   * The clock was set while the sensor was down. In the present clock the last commit ended at `endedMs`, so the gap
   * starts with that minute, which no commit covers by this clock.
   */
  #nameAcrossStep(first: Timeline, thisMinute: number, last: CommittedBy): void {
    const endedMs = (last.throughMinute + 60) * 1000 + first.offsetMs - last.offsetMs;
    first.since = Math.min(thisMinute, minuteOf(endedMs));
    this.#name(first, missingBetween(first.since - 60, thisMinute), first.since);
  }

  /** `since`: the first minute of this clock; an earlier clock reported the time before. */
  #name(timeline: Timeline, missing: MinuteRange | null, since: number): void {
    if (!missing) return;
    const [from, to] = missing;
    this.#deps.reporter.warn('minutes were missed while the sensor was down', {
      from: isoMinute(from),
      to: isoMinute(to),
    });
    this.#deps.commits.commitGap(timeline, missing, 'sensor_down', since);
  }

  /**
   * The last committed minute before this one. Minutes that a clock ahead stamped before the latest commit do not
   * count: they may be moved, and otherwise the spool leaves them out of the gap.
   */
  #committedBefore(minute: number): number | null {
    const covered = this.#deps.spool.coveredBefore(minute);
    const last = this.#deps.spool.lastStampedBy();
    if (covered === null || last === null) return covered;
    const aheadSeconds = covered - last.throughMinute;
    return aheadSeconds > 0 && aheadSeconds <= aheadMaxSeconds ? last.throughMinute : covered;
  }
}
