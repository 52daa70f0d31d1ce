/**
 * Opens, updates and ends incidents from the counters of closed seconds. It has no clock and reads no packet: the caller
 * passes every second once, with the seconds before it.
 */
import { Bin, type TrafficDetail } from '#sensor/capture/index.ts';
import { classify, highVolume, type Severity, type Verdict } from './classify.ts';
import { type Incident, newIncident, type Observation, OpenIncident, type Target } from './incident.ts';
import { attackRatios, largest, largestPossible, volumeRatio } from './ratios.ts';
import {
  type DirectionName,
  type DirectionThresholds,
  prefixThresholds,
  type Thresholds,
} from './thresholds.ts';
import {
  type Amount,
  amountOf,
  attackPart,
  type Counts,
  emptyCounts,
  type Traffic,
  totalOf,
} from './traffic.ts';
import { firstSecondOf, isTriggered, loudSeconds, windowSeconds } from './trigger.ts';

/** One second of a target: its direction and the opposite one. */
export interface TargetSecond {
  counts: Counts;
  opposite: Counts;
}

export interface TargetWindow {
  target: Target;
  direction: DirectionName;
  /** The last closed seconds, the newest last. */
  seconds: readonly TargetSecond[];
  detail: TrafficDetail | null;
}

/** The clock of one judgement, unix milliseconds. */
export interface ClosedSecond {
  /** Start of the closed second. */
  at: number;
  /** When it is judged: its end, or the last packet of a capture that ends in it. */
  judgedAt: number;
  /** False when the second is known only in part, or is judged late: then no incident begins and none recovers. */
  isWhole: boolean;
}

/** Two-way traffic of this share is ordinary, however much it is. */
const ordinaryShare = 0.95;
/** Ratio of packets or bytes of the other part from which a mixture is called an attack. */
const mixtureRatio = 0.5;
/** A second below this ratio decides nothing. */
const worthLooking = 0.3;
/** Time after a recovery in which the same attack continues the same incident. */
const reopenMs = 300_000;
const topSourcesMax = 20;
/** Incidents that are kept; further ones are counted. */
const incidentsMax = 10_000;

export class Judge {
  /** Every incident, in the order of detection. */
  readonly incidents: Incident[] = [];
  /** Number of incidents without room. */
  incidentsLost = 0;

  readonly #thresholds: Record<Target['kind'], Thresholds>;
  readonly #open = new Map<string, OpenIncident>();
  readonly #recovered = new Map<string, OpenIncident>();

  constructor(thresholds: Thresholds) {
    this.#thresholds = { host: thresholds, prefix: prefixThresholds(thresholds) };
  }

  /** Judges a closed second of every target with traffic worth judging. Targets with open incidents may be missing. */
  close(second: ClosedSecond, windows: Iterable<TargetWindow>): void {
    const seen = new Set<OpenIncident>();
    for (const window of windows) this.#judge(second, window, seen);
    for (const open of this.#open.values()) {
      if (seen.has(open)) continue;
      if (!second.isWhole) open.noteGap();
      else open.observe({ at: second.at, amount: { packets: 0, bytes: 0 }, ratio: 0, ratioMax: 0 });
    }
    this.#keepRecovered(second.judgedAt);
  }

  /** A part of the time was not observed. */
  noteGap(): void {
    for (const open of this.#open.values()) open.noteGap();
  }

  /** True while the target has an open incident of severity attack. */
  isAttacked(target: Target, direction: DirectionName): boolean {
    return this.#open.has(keyOf(target, direction, 'attack'));
  }

  /** True while the target has an open incident. */
  hasOpen(target: Target, direction: DirectionName): boolean {
    return this.isAttacked(target, direction) || this.#open.has(keyOf(target, direction, 'info'));
  }

  /** Number of open incidents. */
  get openCount(): number {
    return this.#open.size;
  }

  #judge(second: ClosedSecond, window: TargetWindow, seen: Set<OpenIncident>): void {
    const { target, direction } = window;
    const observed = new Observed(second, window, this.#thresholds[target.kind][direction]);
    for (const severity of ['attack', 'info'] as const) {
      const open = this.#open.get(keyOf(target, direction, severity));
      if (!open) continue;
      seen.add(open);
      this.#update(open, observed);
    }
    if (!second.isWhole || this.isAttacked(target, direction)) return;
    const { last } = observed;
    if (observed.attackAt(last) >= worthLooking && isTriggered(observed.attack))
      this.#begin(observed, verdictOf(observed, observed.attack), observed.attack);
    // A prefix is many servers: much ordinary traffic of all of them is no incident.
    else if (
      target.kind === 'host' &&
      observed.volumeAt(last) >= worthLooking &&
      isTriggered(observed.volume)
    )
      this.#begin(observed, volumeVerdict(observed), observed.volume);
  }

  #begin(observed: Observed, verdict: Verdict, ratios: readonly number[]): void {
    const { second, window } = observed;
    const { target, direction, seconds } = window;
    const key = keyOf(target, direction, verdict.severity);
    if (this.#open.has(key)) return;
    const recoveredKey = `${key} ${verdict.class}`;
    const before = this.#recovered.get(recoveredKey);
    if (before) {
      this.#recovered.delete(recoveredKey);
      before.reopen();
      this.#open.set(key, before);
      this.#update(before, observed);
      return;
    }
    if (this.incidents.length >= incidentsMax) {
      this.incidentsLost += 1;
      return;
    }
    const first = firstSecondOf(ratios);
    const timeOf = (i: number) => second.at - (seconds.length - 1 - i) * 1000;
    const incident = newIncident(target, direction, verdict, timeOf(first), second.judgedAt);
    const open = new OpenIncident(incident);
    this.incidents.push(incident);
    this.#open.set(key, open);
    for (let i = first; i < seconds.length; i += 1)
      open.observe(observationOf(observed, i, incident, timeOf(i)));
    noteDetail(incident, observed);
  }

  #update(open: OpenIncident, observed: Observed): void {
    const { incident } = open;
    const { second } = observed;
    if (!second.isWhole) {
      open.noteGap();
      return;
    }
    const { last } = observed;
    const observation = observationOf(observed, last, incident, second.at);
    if (observed.window.seconds[last]!.counts[Bin.unknown]! > 0) open.noteGap();
    const isStrongest = open.observe(observation);
    if (!isStrongest) return;
    noteDetail(incident, observed);
    if (incident.class !== 'high_volume') {
      const { vectors } = verdictOf(observed, observed.attack);
      if (vectors.some((vector) => vector.class === incident.class)) incident.vectors = vectors;
    }
  }

  /** Moves recovered incidents aside, and forgets them when the same attack would be a new incident. */
  #keepRecovered(now: number): void {
    for (const [key, open] of this.#open) {
      if (open.incident.state === 'active') continue;
      this.#open.delete(key);
      this.#recovered.set(`${key} ${open.incident.class}`, open);
    }
    for (const [key, { incident }] of this.#recovered) {
      const age = now - incident.recoveredAt!;
      if (age > reopenMs || age < 0) this.#recovered.delete(key);
    }
  }
}

/** A window, with what is computed from it when it is needed first. */
class Observed {
  readonly second: ClosedSecond;
  readonly window: TargetWindow;
  readonly thresholds: DirectionThresholds;
  readonly remotes: number | null;
  /** Index of the newest second. */
  readonly last: number;
  readonly #parts: Traffic[] = [];

  constructor(second: ClosedSecond, window: TargetWindow, thresholds: DirectionThresholds) {
    const seconds = window.seconds.slice(-windowSeconds);
    this.second = second;
    this.window = { ...window, seconds };
    this.thresholds = thresholds;
    this.remotes = window.detail?.remotes() ?? null;
    this.last = seconds.length - 1;
  }

  /** The part of a second that may be an attack. */
  partAt(i: number): Traffic {
    const { counts, opposite } = this.window.seconds[i]!;
    this.#parts[i] ??= attackPart(counts, opposite, this.window.direction, this.remotes);
    return this.#parts[i];
  }

  /** Ratio of that part. */
  attackAt(i: number): number {
    return largest(attackRatios(this.partAt(i), this.thresholds, 1, this.remotes));
  }

  /** Ratio of all traffic of a second. */
  volumeAt(i: number): number {
    return volumeRatio(totalOf(this.window.seconds[i]!.counts), this.thresholds);
  }

  get attack(): number[] {
    return this.window.seconds.map((_, i) => this.attackAt(i));
  }

  get volume(): number[] {
    return this.window.seconds.map((_, i) => this.volumeAt(i));
  }
}

function observationOf(observed: Observed, i: number, incident: Incident, at: number): Observation {
  const { window, thresholds } = observed;
  const { counts } = window.seconds[i]!;
  const isVolume = incident.class === 'high_volume';
  const ratio = isVolume ? observed.volumeAt(i) : observed.attackAt(i);
  // Packets of completed connections are not apart from others, so a flood of connections is all traffic too.
  const isAll = isVolume || incident.class === 'connection_flood';
  return {
    at,
    amount: isAll ? totalOf(counts) : amountOf(observed.partAt(i)),
    ratio,
    ratioMax: largestPossible(ratio, counts, thresholds),
  };
}

function noteDetail(incident: Incident, { window }: Observed): void {
  if (incident.direction !== 'inbound' || window.detail === null) return;
  const sources = window.detail.prefixes(topSourcesMax);
  if (sources.length > 0) incident.topSources = sources;
}

/** The class of the attack in the window's loud seconds. */
function verdictOf(observed: Observed, series: readonly number[]): Verdict {
  const { window, thresholds, remotes } = observed;
  const loud = loudSeconds(series);
  const counts = emptyCounts();
  const opposite = emptyCounts();
  for (const i of loud) {
    const one = window.seconds[i]!;
    for (let at = 0; at < counts.length; at += 1) {
      counts[at]! += one.counts[at]!;
      opposite[at]! += one.opposite[at]!;
    }
  }
  const part = attackPart(counts, opposite, window.direction, remotes);
  const ratios = attackRatios(part, thresholds, Math.max(1, loud.length), remotes);
  return classify(part, ratios, window.direction, window.detail);
}

/** The verdict on traffic that exceeds a threshold only as a whole. */
function volumeVerdict(observed: Observed): Verdict {
  const { window, thresholds } = observed;
  const all = { packets: 0, bytes: 0 };
  const part = { packets: 0, bytes: 0 };
  for (const [i, { counts }] of window.seconds.entries()) {
    addTo(all, totalOf(counts));
    addTo(part, amountOf(observed.partAt(i)));
  }
  const share = Math.max(part.packets / Math.max(1, all.packets), part.bytes / Math.max(1, all.bytes));
  const mean = volumeRatio(part, thresholds) / windowSeconds;
  if (share > 1 - ordinaryShare && mean >= mixtureRatio) return verdictOf(observed, observed.volume);
  return highVolume(window.detail);
}

function addTo(sum: Amount, one: Amount): void {
  sum.packets += one.packets;
  sum.bytes += one.bytes;
}

function keyOf(target: Target, direction: DirectionName, severity: Severity): string {
  return `${target.kind} ${target.value} ${direction} ${severity}`;
}
