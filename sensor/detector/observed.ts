/** What the latest seconds of one target show: ratios to the thresholds, the class, and the amounts. Pure. */
import { attackClassRows } from '#contracts/attack-classes.ts';
import { type Metric, metrics, remotesMax, type Trigger } from '#contracts/sensor-api/detection.ts';
import { classify, highVolume, type Verdict } from './classify.ts';
import type { Incident, Observation } from './incident.ts';
import { attackRatios, largest, largestPossible, type Ratios, volumeRatio } from './ratios.ts';
import type { ClosedSecond, TargetSecond, TargetWindow } from './target-window.ts';
import type { DirectionThresholds } from './thresholds.ts';
import {
  type Amount,
  amountOf,
  asReflected,
  attackPart,
  emptyCounts,
  isReflector,
  reflectedPortOf,
  type Traffic,
  totalOf,
} from './traffic.ts';
import { loudSeconds, triggerOf, windowSeconds } from './trigger.ts';

/** Two-way traffic of this share is ordinary, however much it is. */
const ordinaryShare = 0.95;
/** Ratio of packets or bytes of the other part from which a mixture is called an attack. */
const mixtureRatio = 0.5;
/** A window, with what is computed from it when it is needed first. */
export class Observed {
  readonly second: ClosedSecond;
  readonly window: TargetWindow;
  readonly thresholds: DirectionThresholds;
  readonly remotes: number | null;
  /** The port from which an inbound attack is reflected, 0 where it is not. */
  readonly #reflectedPort: number;
  readonly #isReflector: boolean;
  /** Index of the newest second. */
  readonly last: number;
  readonly #parts: Traffic[] = [];
  readonly #ratios: Ratios[] = [];

  constructor(second: ClosedSecond, window: TargetWindow) {
    const seconds = window.seconds.slice(-windowSeconds);
    this.second = second;
    this.window = { ...window, seconds };
    this.thresholds = window.thresholds;
    this.remotes = window.detail?.remotes() ?? null;
    this.#reflectedPort = window.direction === 'inbound' ? reflectedPortOf(window.detail) : 0;
    // A drill has no ports, and made-up sources answer nothing.
    this.#isReflector =
      window.direction === 'outbound' &&
      window.target.mac === undefined &&
      (window.isDrill === true || isReflector(window.detail));
    this.last = seconds.length - 1;
  }

  /** The part of a second that may be an attack on this target. */
  unassignedAt(i: number): TargetSecond {
    const second = this.window.seconds[i]!;
    return second.unassigned ?? second;
  }

  /** What of it may be an attack. */
  partAt(i: number): Traffic {
    this.#parts[i] ??= this.partOf(this.unassignedAt(i));
    return this.#parts[i];
  }

  /** What may be an attack of counters of this target. */
  partOf({ counts, opposite }: TargetSecond): Traffic {
    const part = attackPart(counts, opposite, this.window.direction, this.#isReflector);
    if (this.#reflectedPort > 0) asReflected(part, this.#reflectedPort);
    return part;
  }

  /** Its ratios by metric. */
  ratiosAt(i: number): Ratios {
    this.#ratios[i] ??= attackRatios(this.partAt(i), this.thresholds, 1, this.remotes);
    return this.#ratios[i];
  }

  /** The largest of them. */
  attackAt(i: number): number {
    return Math.max(largest(this.ratiosAt(i)), this.window.overall?.attack[i] ?? 0);
  }

  /** Ratio of all traffic of a second. */
  volumeAt(i: number): number {
    const { seconds, overall } = this.window;
    return overall?.volume[i] ?? volumeRatio(totalOf(seconds[i]!.counts), this.thresholds);
  }

  /** The threshold that the window's strongest second exceeds most, null where it is none of a rate. */
  exceeded(isVolume: boolean): Incident['threshold'] {
    const ratios = isVolume ? this.volume : this.attack;
    const strongest = ratios.indexOf(Math.max(...ratios));
    if (!isVolume) return this.nearestAt(strongest);
    const { pps, bps } = this.thresholds;
    const { packets, bytes } = totalOf(this.window.seconds[strongest]!.counts);
    const isBps = (bytes * 8) / bps > packets / pps;
    return judgedOnly(isBps ? { metric: 'bps', value: bps } : { metric: 'pps', value: pps });
  }

  /** The threshold to which what may be an attack comes nearest in a second. */
  nearestAt(i: number): Incident['threshold'] {
    const byMetric = this.ratiosAt(i);
    const metric = metrics.reduce((most, one) => (byMetric[one] > byMetric[most] ? one : most));
    return judgedOnly({ metric, value: this.thresholds[metric] });
  }

  get attack(): number[] {
    return this.window.seconds.map((_, i) => this.attackAt(i));
  }

  /**
   * By which rule one threshold is exceeded for long enough. Flows that begin one after another exceed one each, for the second until
   * they converse.
   */
  get attackTrigger(): Trigger | null {
    const [first] = this.triggers.values();
    return first ?? triggerOf(this.window.overall?.attack ?? []);
  }

  /** The metrics whose threshold is exceeded for long enough, and by which rule. */
  get triggers(): Map<Metric, Trigger> {
    const all = this.window.seconds.map((_, i) => this.ratiosAt(i));
    return new Map(
      metrics.flatMap((metric) => {
        const trigger = triggerOf(all.map((ratios) => ratios[metric]));
        return trigger ? [[metric, trigger]] : [];
      }),
    );
  }

  get volume(): number[] {
    return this.window.seconds.map((_, i) => this.volumeAt(i));
  }
}

export function observationOf(observed: Observed, i: number, incident: Incident, at: number): Observation {
  const { window, thresholds } = observed;
  const isVolume = incident.class === 'high_volume';
  const ratio = isVolume ? observed.volumeAt(i) : observed.attackAt(i);
  // Packets of completed connections are not apart from others, so a flood of connections is all traffic too.
  const isAll = isVolume || incident.class === 'connection_flood';
  return {
    at,
    amount: isAll ? totalOf(window.seconds[i]!.counts) : amountOf(observed.partAt(i)),
    ratio,
    ratioMax: largestPossible(ratio, observed.unassignedAt(i).counts, thresholds),
  };
}

export function noteDetail(incident: Incident, { window }: Observed): void {
  const remotes = window.detail?.prefixes(remotesMax) ?? [];
  if (remotes.length > 0) incident.remotes = remotes;
}

/** The class of the attack in the window's loud seconds. */
export function verdictOf(observed: Observed, series: readonly number[]): Verdict {
  const { thresholds, remotes } = observed;
  const loud = loudSeconds(series);
  const counts = emptyCounts();
  const opposite = emptyCounts();
  for (const i of loud) {
    const one = observed.unassignedAt(i);
    for (let at = 0; at < counts.length; at += 1) {
      counts[at]! += one.counts[at]!;
      opposite[at]! += one.opposite[at]!;
    }
  }
  const part = observed.partOf({ counts, opposite });
  const ratios = { ...attackRatios(part, thresholds, Math.max(1, loud.length), remotes) };
  // What exceeds its threshold for a second is not what the attack is.
  const { triggers } = observed;
  if (triggers.size > 0) for (const metric of metrics) if (!triggers.has(metric)) ratios[metric] = 0;
  const verdict = classify(part, ratios, observed.window);
  const isUnsure =
    (observed.second.isOneDirection ?? false) && attackClassRows[verdict.class].restsOnAnswers === true;
  return isUnsure ? { ...verdict, severity: 'info' } : verdict;
}

/** The verdict on traffic that exceeds a threshold only as a whole. */
export function volumeVerdict(observed: Observed): Verdict {
  const { window, thresholds } = observed;
  const all = { packets: 0, bytes: 0 };
  const part = { packets: 0, bytes: 0 };
  let seconds = 0;
  for (const [i, { counts }] of window.seconds.entries()) {
    const own = amountOf(observed.partAt(i));
    addTo(all, totalOf(counts));
    addTo(part, own);
    if (volumeRatio(own, thresholds) >= mixtureRatio) seconds += 1;
  }
  const share = Math.max(part.packets / Math.max(1, all.packets), part.bytes / Math.max(1, all.bytes));
  const mean = volumeRatio(part, thresholds) / windowSeconds;
  // One second is what many flows send that were open before the capture began, and one what others send that begin.
  const isMixture = seconds >= 3 && share > 1 - ordinaryShare && mean >= mixtureRatio;
  if (isMixture) return verdictOf(observed, observed.volume);
  return highVolume(window.detail);
}

function judgedOnly(threshold: NonNullable<Incident['threshold']>): Incident['threshold'] {
  return Number.isFinite(threshold.value) ? threshold : null;
}

function addTo(sum: Amount, one: Amount): void {
  sum.packets += one.packets;
  sum.bytes += one.bytes;
}
