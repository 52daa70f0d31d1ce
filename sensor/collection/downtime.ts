/**
 * Names the minutes for which the sensor was down: from its last commit to its start, by the clock of now. When that clock
 * was never set, the length of the downtime is unknown until it is.
 */
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { clockStepMs, type Moment, setClockFrom } from '#sensor/host-time/index.ts';
import {
  type CommittedBy,
  type MinuteRange,
  missingBetween,
  type Spool,
  subtractRanges,
} from '#sensor/spool/index.ts';
import { isoMinute, minuteOf, type Timeline, type TimelineCommits } from './timelines.ts';

/** A difference above this means that the latest clock was behind; below it, that the previous one was ahead. */
const aheadMaxSeconds = 86_400;

interface DowntimeDeps {
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

  /**
   * The sensor starts, with this timeline: commits the gap since the last covered minute, and what a killed sensor left of
   * minutes that are over.
   */
  nameAtStart(first: Timeline, now: Moment, recovered: readonly TelemetryMinute[]): void {
    const { spool, bootId } = this.#deps;
    const thisMinute = minuteOf(now.wallMs);
    const last = spool.lastStampedBy();
    const isSameBoot = last !== null && last.bootId === bootId;
    if (isSameBoot && Math.abs(first.offsetMs - last.offsetMs) >= clockStepMs) {
      this.#nameAcrossStep(first, thisMinute, last);
      return;
    }
    if (thisMinute < setClockFrom) this.#unnamedStartMs = now.uptimeMs;
    const before = isSameBoot ? last.throughMinute : this.#committedBefore(thisMinute);
    const since = isSameBoot ? last.throughMinute + 60 : thisMinute;
    this.#name(first, missingBetween(before, thisMinute), since, recovered);
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
  #name(
    timeline: Timeline,
    missing: MinuteRange | null,
    since: number,
    recovered: readonly TelemetryMinute[] = [],
  ): void {
    const kept = Map.groupBy(recovered, (one) => one.minute);
    if (missing) for (const minute of this.#counted(missing)) if (!kept.has(minute)) kept.set(minute, []);
    const known = [...kept.keys()].map((minute): MinuteRange => [minute, minute]);
    const gaps = missing ? subtractRanges([missing], known, Number.NEGATIVE_INFINITY) : [];
    // In their order: what a death in between leaves uncommitted is after the last commit.
    for (const range of [...gaps, ...known].sort(([a], [b]) => a - b)) {
      const [from, to] = range;
      const parts = kept.get(from);
      if (parts) {
        this.#deps.commits.commitRecovered(timeline, from, parts, Math.min(since, from));
        continue;
      }
      this.#deps.reporter.warn('minutes were missed while the sensor was down', {
        from: isoMinute(from),
        to: isoMinute(to),
      });
      this.#deps.commits.commitGap(timeline, range, 'sensor_down', since);
    }
  }

  /** The minutes of a range that the kernel counted; it keeps the last ones only. */
  #counted([from, to]: MinuteRange): number[] {
    const minutes: number[] = [];
    for (let minute = to; minute >= from && this.#deps.commits.isCounted(minute); minute -= 60)
      minutes.push(minute);
    return minutes;
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
