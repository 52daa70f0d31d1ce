/**
 * The addresses with the most traffic, and why none of their seconds is an incident; for `sensor detect --explain` only.
 *
 * A second is looked at when the next one is over: of the last one it is not known yet which pairs in it will converse.
 */
import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { fastTriggerRatio } from '#contracts/sensor-api/detection.ts';
import { type AttackCounters, Direction } from '#sensor/attack-counters/index.ts';
import { isSlotHot } from './heat.ts';
import type { Incident } from './incident.ts';
import { Observed } from './observed.ts';
import { volumeRatio } from './ratios.ts';
import { type Reason, reasonOf } from './reason.ts';
import type { ClosedSecond } from './target-window.ts';
import type { ThresholdSet } from './threshold-book.ts';
import { type DirectionName, directionNames } from './thresholds.ts';
import { emptyCounts, totalOf } from './traffic.ts';
import type { WatchedTargets } from './watched-targets.ts';

/** A target without an incident. */
export interface LargeTarget {
  target: Incident['target'];
  direction: DirectionName;
  /** Seconds of what may be an attack at a threshold, and at the ratio of which two of three decide. */
  secondsAtThreshold: number;
  loudSeconds: number;
  /** The largest ratio of what may be an attack, of seconds that were looked at closely. */
  ratio: number;
  /** Its strongest second, unix milliseconds, and the threshold to which what may be an attack came nearest in it. */
  at: number;
  threshold: Incident['threshold'];
  reason: Reason;
}

/** Targets that are remembered; the weaker half makes room. */
const targetsMax = 4096;

export class LargestTargets {
  readonly #counters: AttackCounters;
  readonly #targets: WatchedTargets;
  readonly #sets: readonly ThresholdSet[];
  readonly #found = new Map<string, LargeTarget & { strength: number }>();
  readonly #counts = emptyCounts();

  constructor(counters: AttackCounters, targets: WatchedTargets, sets: readonly ThresholdSet[]) {
    this.#counters = counters;
    this.#targets = targets;
    this.#sets = sets;
  }

  /** Looks at the second that ended so many seconds before the closed one. */
  note(second: number, ago: 0 | 1, closed: ClosedSecond): void {
    const { hosts } = this.#counters;
    if (second < ago) return;
    for (let slot = 0; slot < hosts.count; slot += 1)
      for (const direction of directionNames) this.#noteHost(slot, direction, second, ago, closed);
  }

  /** The strongest ones of which there is no incident. */
  without(incidents: readonly Incident[], max: number): LargeTarget[] {
    const isTold = ({ target, direction }: LargeTarget) =>
      incidents.some((one) => one.direction === direction && isPartOf(target, one.target));
    return [...this.#found.values()]
      .filter((one) => !isTold(one))
      .sort((a, b) => b.strength - a.strength)
      .slice(0, max);
  }

  #noteHost(slot: number, direction: DirectionName, second: number, ago: 0 | 1, closed: ClosedSecond): void {
    const { hosts } = this.#counters;
    const counts = this.#counts.fill(0);
    hosts.addBin(slot, Direction[direction], second - ago, counts);
    const all = totalOf(counts);
    if (all.packets === 0) return;
    const { host, hostLimits } = this.#sets[hosts.group(slot)]!;
    const thresholds = host[direction];
    const volume = volumeRatio(all, thresholds);
    const key = `${direction} ${hosts.text(slot)}`;
    const known = this.#found.get(key);
    const isHot = isSlotHot(hosts, slot, Direction[direction], second - ago, hostLimits, thresholds);
    if (!isHot && known && volume <= known.strength) return;
    const window = this.#targets.hostWindow(slot, direction, second - ago);
    const observed = new Observed(closed, window);
    const ratio = observed.attackAt(observed.last);
    const one = known ?? { secondsAtThreshold: 0, loudSeconds: 0, ratio: 0 };
    one.ratio = Math.max(one.ratio, ratio);
    if (ratio >= 1) one.secondsAtThreshold += 1;
    if (ratio >= fastTriggerRatio) one.loudSeconds += 1;
    const strength = Math.max(ratio, volume);
    if (known && strength <= known.strength) return;
    const { last } = observed;
    const pairs = this.#counters.pairs.counts.ofHost(slot);
    this.#found.set(key, {
      ...{ target: window.target, direction, strength, at: closed.at - ago * 1000 },
      ...{ secondsAtThreshold: one.secondsAtThreshold, loudSeconds: one.loudSeconds, ratio: one.ratio },
      threshold: observed.nearestAt(last),
      reason: reasonOf(observed, observed.attack, last, pairs),
    });
    if (this.#found.size > targetsMax) this.#makeRoom();
  }

  #makeRoom(): void {
    const strongest = [...this.#found].sort(([, a], [, b]) => b.strength - a.strength);
    for (const [key] of strongest.slice(targetsMax / 2)) this.#found.delete(key);
  }
}

/** True for the target of an incident, and for an address of its prefix. */
function isPartOf(host: Incident['target'], whole: Incident['target']): boolean {
  if (whole.kind !== 'prefix') return host.value === whole.value;
  return prefixContains(parsePrefix(whole.value)!, parseAddress(host.value)!);
}
