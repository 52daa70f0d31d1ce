/** Joins the counters, the clock of the packets and the judge. */
import { AttackCounters, type AttackCountersOptions, FrameFeed } from '#sensor/attack-counters/index.ts';
import { CaptureWatch, type WatchedCapture } from './capture-watch.ts';
import type { Incident } from './incident.ts';
import { Judge } from './judge.ts';
import { LargestTargets, type LargeTarget } from './largest-targets.ts';
import { SeenDirections } from './seen-directions.ts';
import type { ClosedSecond, TargetWindow } from './target-window.ts';
import { type ThresholdSet, thresholdSet } from './threshold-book.ts';
import type { Thresholds } from './thresholds.ts';
import { windowSeconds } from './trigger.ts';
import { WatchedTargets } from './watched-targets.ts';

export interface DetectorOptions extends Pick<AttackCountersOptions, 'scope' | 'key'> {
  thresholds: Thresholds;
  /** The capture that the packets are of; without it only addresses and prefixes are judged. */
  capture?: WatchedCapture;
  /** Also looks for the largest targets without an incident. */
  explains?: boolean;
}

export interface DetectorResult {
  /** False when a second was not observed, an address had no counters of its own, or packets could not be counted. */
  complete: boolean;
  /** Seconds that were judged. */
  ticks: number;
  /** Addresses with counters of their own. */
  hosts: number;
  /** Packets to and from protected addresses without counters of their own. */
  overflowed: number;
  /** Pairs of addresses that had to make room, before they conversed and after. */
  evictedPairs: { unestablished: number; established: number };
  /** Pauses in the packets' times, and steps back, after which the seconds between were not observed. */
  gaps: number;
  /** Frames that were merged out of an unknown number of packets. */
  mergedFrames: number;
  /** At the end only packets of one direction had been seen for a minute. */
  seesOneDirection: boolean;
  incidents: readonly Incident[];
  incidentsLost: number;
  /** The largest targets without an incident; empty unless `explains`. */
  largestOthers: readonly LargeTarget[];
}

/** A link on which nothing is sent for longer was not observed. */
const quietSecondsMax = 10;
/** Packets of several queues arrive out of order by less than this. */
const disorderSecondsMax = 2;
const largestOthersMax = 5;
/** Seconds of counters that a gap makes useless. */
const forgottenSeconds = 6;

export class Detector {
  readonly #counters: AttackCounters;
  readonly #feed: FrameFeed;
  readonly #judge: Judge;
  readonly #targets: WatchedTargets;
  readonly #whole: CaptureWatch | null;
  readonly #largest: LargestTargets | null;
  readonly #sets: readonly ThresholdSet[];
  readonly #directions = new SeenDirections();
  /** Seconds of the counters go up by one; unix seconds of the packets may jump. */
  #second = 0;
  #unixSecond = -1;
  /** The last second with a packet. */
  #countedSecond = 0;
  #lastMs = 0;
  #ticks = 0;
  #gaps = 0;

  constructor({ scope, thresholds, key, capture, explains = false }: DetectorOptions) {
    const set = thresholdSet(thresholds);
    const limits = [set.hostLimits];
    this.#counters = new AttackCounters({ scope, limits, countsPairs: explains, ...(key && { key }) });
    this.#feed = new FrameFeed(this.#counters);
    this.#judge = new Judge();
    this.#sets = [set];
    this.#targets = new WatchedTargets(this.#counters, this.#sets, capture?.name ?? 'capture');
    this.#whole = capture ? new CaptureWatch(capture) : null;
    this.#largest = explains ? new LargestTargets(this.#counters, this.#targets, this.#sets) : null;
  }

  /**
   * Counts a frame at its own time; a frame of a later second has the seconds before judged. `segments` as in
   * `Capture.observe`.
   */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    nanoseconds: number,
    linkType: number,
    segments: number,
  ): void {
    if (seconds !== this.#unixSecond) this.#advance(seconds);
    this.#countedSecond = this.#second;
    this.#lastMs = seconds * 1000 + nanoseconds / 1e6;
    this.#feed.observe(bytes, offset, capturedLength, wireLength, linkType, segments, this.#second);
  }

  /** Judges the last second and returns everything. Call once. */
  finish(): DetectorResult {
    if (this.#unixSecond >= 0) {
      const last = this.#close(this.#lastMs, true);
      this.#largest?.note(this.#second, 0, last);
    }
    const { overflowed, hostsSeen, mergedFrames } = this.#counters;
    const { incidents, incidentsLost } = this.#judge;
    const isCounted = overflowed === 0 && mergedFrames === 0 && incidentsLost === 0;
    return {
      complete: isCounted && this.#gaps === 0,
      ticks: this.#ticks,
      hosts: hostsSeen,
      overflowed,
      evictedPairs: this.#counters.pairs.evicted,
      gaps: this.#gaps,
      mergedFrames,
      seesOneDirection: this.#directions.isOne,
      incidents,
      incidentsLost,
      largestOthers: this.#largest?.without(incidents, largestOthersMax) ?? [],
    };
  }

  #advance(seconds: number): void {
    const step = seconds - this.#unixSecond;
    if (this.#unixSecond < 0) {
      this.#unixSecond = seconds;
      return;
    }
    if (step < 0 && step >= -disorderSecondsMax) return;
    const isContinued = step > 0 && step <= quietSecondsMax;
    // Before a step back, a second may have been counted only in part.
    this.#close((this.#unixSecond + 1) * 1000, step > 0);
    if (!isContinued) {
      this.#gaps += 1;
      this.#judge.noteGap();
      this.#second += forgottenSeconds;
      this.#unixSecond = seconds;
      this.#counters.open(this.#second);
      return;
    }
    while (this.#unixSecond < seconds) {
      this.#second += 1;
      this.#unixSecond += 1;
      this.#counters.open(this.#second);
      if (this.#unixSecond < seconds) this.#close((this.#unixSecond + 1) * 1000, true);
    }
  }

  /** Judges the open second. */
  #close(judgedAt: number, isWhole: boolean): ClosedSecond {
    this.#ticks += 1;
    this.#counters.finish();
    const isQuiet = this.#second - this.#countedSecond >= windowSeconds;
    const total = this.#targets.read(this.#second);
    this.#whole?.count(this.#second, this.#unixSecond, isWhole, total, this.#judge);
    this.#directions.note(total, this.#targets.sent);
    const windows = isQuiet ? [] : this.#windows();
    const isOneDirection = this.#directions.isOne;
    const closed = { at: this.#unixSecond * 1000, judgedAt, isWhole, isLossy: false, isOneDirection };
    this.#judge.close(closed, windows);
    this.#largest?.note(this.#second, 1, closed);
    return closed;
  }

  *#windows(): Iterable<TargetWindow> {
    const [counters, judge] = [this.#counters, this.#judge];
    yield* this.#targets.windows(this.#second, judge);
    const whole = this.#whole?.window(this.#second, { counters, sets: this.#sets, judge });
    if (whole) yield whole;
  }
}
