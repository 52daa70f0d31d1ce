/**
 * The detector of one running capture: adds the seconds of its threads, judges each second once, and sums up the minutes.
 *
 * A second is judged when every thread has handed it over, or three seconds after its end. What comes later than that, what
 * a thread did not observe as a whole, and what a clock step cut, is not observed: no incident begins or recovers by it, and
 * nothing of it is spread over other seconds.
 */
import { type DetectorMinute, metrics } from '#contracts/sensor-api/detection.ts';
import { Direction, type MemberSecond } from '#sensor/attack-counters/index.ts';
import { type LocalScope, parseWords } from '#sensor/capture/index.ts';
import { CaptureWatch, type WatchedCapture } from './capture-watch.ts';
import { type Drill, drillWindow } from './drills.ts';
import { type FilteredSecond, FilteredTraffic, noteFiltered } from './filtered-traffic.ts';
import type { Incident } from './incident.ts';
import { Judge } from './judge.ts';
import { MergedCounters } from './merged-counters.ts';
import { MinuteTally } from './minute-tally.ts';
import { attackRates, attackRatios, largest } from './ratios.ts';
import { SeenDirections } from './seen-directions.ts';
import { emptyWindow, type TargetWindow } from './target-window.ts';
import type { ThresholdBook, ThresholdGroup } from './threshold-book.ts';
import { type DirectionName, directionNames } from './thresholds.ts';
import {
  type Amount,
  asReflected,
  attackPart,
  emptyCounts,
  isReflector,
  reflectedPortOf,
} from './traffic.ts';
import { WatchedTargets } from './watched-targets.ts';

/** What is protected, by which thresholds. */
export interface DetectionOrder {
  /** One higher with each order; the seconds of the threads carry it. */
  number: number;
  epochId: string;
  scope: LocalScope;
  book: ThresholdBook;
  groups: readonly ThresholdGroup[];
  drills: readonly Drill[];
  isProtected(target: Incident['target']): boolean;
}

/** Later than this after its end, a second was not judged in time. */
const lateMs = 3000;
/** Clocks of threads may differ by less than this; a second that ends later has not been observed. */
const earlyMs = 1500;
/** Part of lost packets from which a second is no step of a recovery. */
const lossMax = 0.01;
/** Seconds that wait for other threads. */
const waitingMax = 16;
/** Minutes that are kept until they are taken. */
const minutesMax = 4;

export class LiveDetector {
  #order: DetectionOrder;
  readonly #judge: Judge;
  readonly #counters: MergedCounters;
  #targets: WatchedTargets;
  readonly #waiting = new Map<number, MemberSecond[]>();
  readonly #name: string;
  readonly #whole: CaptureWatch | null;
  readonly #minutes = new Map<number, MinuteTally>();
  readonly #directions = new SeenDirections();
  readonly #filtered = new FilteredTraffic();
  /** Seconds of the counters go up by one; unix seconds may jump. */
  #second = 16;
  #unixSecond = -1;
  #abandoned: Incident[] = [];

  /** `name`: of the capture; `uplink`: it, if it is to be judged as a whole. */
  constructor(order: DetectionOrder, name: string, uplink: WatchedCapture | null = null) {
    this.#order = order;
    this.#name = name;
    this.#whole = uplink && new CaptureWatch(uplink);
    this.#counters = new MergedCounters(order.book.groups);
    this.#targets = new WatchedTargets(this.#counters, order.book.sets, name);
    this.#judge = new Judge({
      keepsAll: false,
      onAmount: (incident, at, { packets, bytes }) => {
        const { target, severity, drill, direction } = incident;
        if (target.kind !== 'host' || severity !== 'attack' || drill) return;
        // What was dropped is not of the minute.
        const dropped = this.#filtered.amountOf(target.value, direction, at / 1000);
        const amount = [packets - dropped.packets, bytes - dropped.bytes].map((one) => Math.max(0, one));
        this.#tallyOf(at / 1000)?.noteAttack(target.value, Direction[direction], amount[0]!, amount[1]!);
      },
    });
  }

  /** Protects something else, or by other thresholds. Incidents of what is not protected any more are abandoned. */
  follow(order: DetectionOrder): void {
    this.#order = order;
    this.#counters.regroup(order.book.groups);
    this.#targets = new WatchedTargets(this.#counters, order.book.sets, this.#name);
    for (const incident of this.#judge.openIncidents()) {
      if (this.#isJudged(incident.target)) continue;
      this.#judge.drop(incident);
      this.abandon(incident);
    }
  }

  /** True when what all addresses together receive in a second may become an attack on the capture. */
  isNear(received: Amount): boolean {
    return this.#whole?.isNear(received, this.#order.book.sets) ?? false;
  }

  /** How far the latest second of an address or a prefix may exceed its thresholds; null before the first. */
  largestRatioOf(target: string): { ratio: number; second: number } | null {
    if (this.#unixSecond < 0) return null;
    const [address, length] = target.split('/');
    const { version, words } = parseWords(address!);
    const { hosts, prefixes } = this.#counters;
    const { sets } = this.#order.book;
    const second = this.#unixSecond;
    if (length !== undefined) {
      const slot = prefixes.find(version, ...words);
      if (slot < 0) return { ratio: 0, second };
      const { prefix, host } = sets[prefixes.group(slot)]!;
      const part = attackPart(this.#targets.receivedIn(slot), emptyCounts(), 'inbound');
      const thresholds = (version === 4 ? prefix : host).inbound;
      return { ratio: largest(attackRatios(part, thresholds, 1, null)), second };
    }
    const slot = hosts.find(version, ...words);
    if (slot < 0) return { ratio: 0, second };
    const { host } = sets[hosts.group(slot)]!;
    const ratios = directionNames.flatMap((direction) =>
      Array.from(
        this.#exactRates(slot, direction),
        (rate, metric) => rate / host[direction][metrics[metric]!],
      ),
    );
    return { ratio: Math.max(...ratios), second };
  }

  /** Takes one thread's second. `members`: how many threads hand seconds over. */
  take(part: MemberSecond, members: number, nowMs: number): void {
    // Stamped by a clock that was set since.
    if ((part.second + 1) * 1000 - nowMs > earlyMs) return;
    const parts = this.#waiting.get(part.second) ?? [];
    this.#waiting.set(part.second, parts);
    parts.push(part);
    this.#judgeWaiting(members, nowMs);
  }

  /** Judges seconds whose threads did not all come in time. */
  tick(members: number, nowMs: number): void {
    this.#judgeWaiting(members, nowMs);
  }

  /** The clock was set by so much. Seconds that wait belong to the old time. */
  noteStep(ms: number, nowMs: number): void {
    this.#judgeAll(nowMs);
    this.#judge.shiftTimes(ms);
    this.#forget();
  }

  /** What the filter at this uplink did in a second that is over. */
  noteFiltered(unixSecond: number, rows: readonly FilteredSecond[]): void {
    this.#filtered.note(unixSecond, rows);
    for (const incident of this.#judge.openIncidents())
      if (incident.target.kind === 'host' && !incident.drill) noteFiltered(incident, rows);
  }

  /** The capture does not listen any more. */
  noteFailure(nowMs: number): void {
    this.#judgeAll(nowMs);
    this.#forget();
  }

  /** What there is to say of a minute that is over. */
  takeMinute(minute: number): DetectorMinute {
    const tally = this.#minutes.get(minute) ?? new MinuteTally(minute);
    this.#minutes.delete(minute);
    return tally.close(this.#judge.pendingIn(minute * 1000, (minute + 60) * 1000));
  }

  /** Continues an incident of the run before. */
  restore(incident: Incident): void {
    if (this.#isJudged(incident.target)) this.#judge.restore(incident);
    else this.abandon(incident);
  }

  /** Nothing more will be observed of an incident. */
  abandon(incident: Incident): void {
    this.#abandoned.push(incident);
  }

  openIncidents(): Incident[] {
    return this.#judge.openIncidents();
  }

  /** Incidents that recovered, and those whose target is not protected any more, since the last call. */
  takeEnded(): { recovered: Incident[]; abandoned: Incident[] } {
    const abandoned = this.#abandoned;
    this.#abandoned = [];
    return { recovered: this.#judge.takeRecovered(), abandoned };
  }

  #isJudged(target: Incident['target']): boolean {
    return target.kind === 'capture'
      ? target.mac !== undefined || target.value === this.#whole?.target.value
      : this.#order.isProtected(target);
  }

  #judgeWaiting(members: number, nowMs: number): void {
    const seconds = [...this.#waiting.keys()].sort((a, b) => a - b);
    for (const [i, second] of seconds.entries()) {
      const isComplete = this.#waiting.get(second)!.length >= members;
      const isOverdue = nowMs - (second + 1) * 1000 > lateMs || seconds.length - i > waitingMax;
      if (!isComplete && !isOverdue) return;
      this.#judgeSecond(second, members, nowMs);
    }
  }

  #judgeAll(nowMs: number): void {
    for (const second of [...this.#waiting.keys()].sort((a, b) => a - b))
      this.#judgeSecond(second, Number.POSITIVE_INFINITY, nowMs);
  }

  #judgeSecond(unixSecond: number, members: number, nowMs: number): void {
    const parts = this.#waiting.get(unixSecond)!;
    this.#waiting.delete(unixSecond);
    // A thread that was late with it; it was judged without.
    if (this.#unixSecond >= 0 && unixSecond <= this.#unixSecond) return;
    this.#advance(unixSecond);
    const endMs = (unixSecond + 1) * 1000;
    const { number, epochId } = this.#order;
    const isInTime = nowMs - endMs <= lateMs;
    const isWhole = isInTime && parts.length >= members && parts.every((part) => part.isWhole);
    const packets = parts.reduce((sum, part) => sum + part.packets, 0);
    const dropped = parts.reduce((sum, part) => sum + part.dropped, 0);
    const hasLoss = dropped > 0;
    const kernel = parts.find((part) => part.kernel === 'counts');
    // What the ring lost was counted in the kernel.
    const isLossy = kernel === undefined && dropped > (packets + dropped) * lossMax;
    const lostBefore = this.#judge.incidentsLost;
    let overflowed = kernel === undefined ? 0 : this.#counters.addKernel(this.#second, kernel);
    for (const part of parts)
      if (part !== kernel) overflowed += part.overflowed + this.#counters.add(this.#second, part);
    if (kernel !== undefined) this.#counters.completeWatched(this.#second, hasLoss);
    const total = this.#targets.read(this.#second);
    this.#whole?.count(this.#second, unixSecond, isWhole && !isLossy, total, this.#judge);
    this.#directions.note(total, this.#targets.sent);
    const isOneDirection = this.#directions.isOne;
    const times = { at: unixSecond * 1000, judgedAt: Math.max(endMs, nowMs) };
    this.#judge.close({ ...times, isWhole, isLossy, isOneDirection }, this.#windows(unixSecond));
    const tally = this.#tallyOf(unixSecond);
    if (!tally) return;
    if (isWhole && !isLossy) tally.ticks += 1;
    tally.overflowed += overflowed;
    tally.mergedFrames += parts.reduce((sum, part) => sum + part.mergedFrames, 0);
    tally.incidentsLost += this.#judge.incidentsLost - lostBefore;
    tally.epochs.add(parts.every((part) => part.order === number) ? epochId : '');
    tally.noteSecond(this.#counters.hosts, this.#second, unixSecond, {
      hot: this.#targets.hot,
      ratesOf: (slot, direction) => this.#exactRates(slot, direction),
    });
  }

  #advance(unixSecond: number): void {
    if (this.#unixSecond >= 0 && unixSecond !== this.#unixSecond + 1) this.#forget();
    this.#second += 1;
    this.#unixSecond = unixSecond;
    this.#counters.open(this.#second);
  }

  /** Time passed that was not observed: what was counted before it decides nothing any more. */
  #forget(): void {
    this.#judge.noteGap();
    this.#second += 8;
    this.#unixSecond = -1;
  }

  *#windows(unixSecond: number): Iterable<TargetWindow> {
    const [counters, judge] = [this.#counters, this.#judge];
    const { drills, book } = this.#order;
    const left = {
      inbound: this.#filtered.targets('inbound', unixSecond),
      outbound: this.#filtered.targets('outbound', unixSecond),
    };
    for (const window of this.#targets.windows(this.#second, judge)) {
      left[window.direction].delete(window.target.value);
      yield this.#filtered.addTo(window, unixSecond);
    }
    for (const direction of directionNames)
      for (const target of left[direction]) {
        const thresholds = book.sets[book.groups.ofText(target)]!.host[direction];
        yield this.#filtered.addTo(emptyWindow(target, direction, thresholds), unixSecond);
      }
    const whole = this.#whole?.window(this.#second, { counters, sets: book.sets, judge });
    if (whole) yield whole;
    for (const drill of drills) {
      const window = drillWindow(
        drill,
        unixSecond,
        book.sets[book.groups.ofText(drill.target)]!.host[drill.direction],
      );
      if (window) yield window;
    }
  }

  /** The rates of a host's traffic of the judged second that may be an attack. */
  #exactRates(slot: number, direction: DirectionName): Float64Array {
    const { hosts } = this.#counters;
    const own = Direction[direction];
    const counts = emptyCounts();
    const opposite = emptyCounts();
    hosts.addBin(slot, own, this.#second, counts);
    hosts.addBin(slot, 1 - own, this.#second, opposite);
    const detail = this.#counters.detailOf(hosts, slot, own);
    const isOutbound = direction === 'outbound';
    const part = attackPart(counts, opposite, direction, isOutbound && isReflector(detail));
    const port = isOutbound ? 0 : reflectedPortOf(detail);
    if (port > 0) asReflected(part, port);
    const exact = attackRates(part, detail?.remotes() ?? null);
    return Float64Array.from(metrics, (metric) => exact[metric]);
  }

  /** The tally of the minute of a second; null when it was taken already. */
  #tallyOf(unixSecond: number): MinuteTally | null {
    const minute = Math.floor(unixSecond / 60) * 60;
    const known = this.#minutes.get(minute);
    if (known) return known;
    const newest = Math.max(-1, ...this.#minutes.keys(), Math.floor(this.#unixSecond / 60) * 60);
    if (minute < newest) return null;
    const made = new MinuteTally(minute);
    this.#minutes.set(minute, made);
    for (const old of [...this.#minutes.keys()].sort((a, b) => a - b))
      if (this.#minutes.size > minutesMax) this.#minutes.delete(old);
    return made;
  }
}
