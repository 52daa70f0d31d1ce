/**
 * Finds the targets worth judging among the counters: hosts with much traffic, and prefixes of which many hosts are attacked
 * at once (carpet bombing): together they have much while none of them has too much alone, or at least sixteen of them have
 * a part of what would be too much for one.
 */
import { Direction } from '#sensor/attack-counters/index.ts';
import { isHot } from './heat.ts';
import { aloneRatio, type CountedTargets, HostSums, prefixText, secondsUpTo } from './host-sums.ts';
import type { Target } from './incident.ts';
import type { Judge } from './judge.ts';
import type { TargetSecond, TargetWindow } from './target-window.ts';
import type { ThresholdSet } from './threshold-book.ts';
import { type DirectionName, directionNames } from './thresholds.ts';
import { emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** So many hosts of a prefix, each at this part of its thresholds, are an attack on the prefix. */
const spreadHosts = 16;
const spreadRatio = 0.3;

export class WatchedTargets {
  readonly #counters: CountedTargets;
  readonly #sums: HostSums;

  /** `sets`: by the group of a slot. */
  constructor(counters: CountedTargets, sets: readonly ThresholdSet[]) {
    this.#counters = counters;
    this.#sums = new HostSums(counters, sets);
  }

  /** The targets of the closed `second`. */
  *windows(second: number, judge: Judge): Iterable<TargetWindow> {
    const { hosts } = this.#counters;
    const hostsOf = new Map<number, number[]>();
    for (let slot = 0; slot < hosts.count; slot += 1) {
      const last = hosts.lastSecond(slot);
      if (last <= second - windowSeconds) continue;
      const prefix = this.#counters.prefixOf(slot);
      if (prefix >= 0) push(hostsOf, prefix, slot);
      for (const direction of directionNames) yield* this.#hostWindow(slot, direction, second, judge);
    }
    yield* this.#prefixWindows(second, judge, hostsOf);
  }

  *#hostWindow(slot: number, direction: DirectionName, second: number, judge: Judge): Iterable<TargetWindow> {
    const { hosts } = this.#counters;
    const counts = this.#sums.read(hosts, slot, Direction[direction], second);
    const set = this.#sums.setOf(hosts, slot);
    const thresholds = set.host[direction];
    const isWatched = isHot(counts, set.hostLimits, Direction[direction], thresholds);
    if (!isWatched && judge.openCount === 0) {
      this.#counters.unwatch(hosts, slot, Direction[direction]);
      return;
    }
    const target: Target = { kind: 'host', value: hosts.text(slot) };
    if (!isWatched && !judge.hasOpen(target, direction)) {
      this.#counters.unwatch(hosts, slot, Direction[direction]);
      return;
    }
    const detail = this.#counters.detailOf(hosts, slot, Direction[direction]);
    yield { target, direction, thresholds, seconds: this.#secondsOf(slot, direction, second), detail };
  }

  *#prefixWindows(
    second: number,
    judge: Judge,
    hostsOf: ReadonlyMap<number, readonly number[]>,
  ): Iterable<TargetWindow> {
    const { prefixes } = this.#counters;
    for (let slot = 0; slot < prefixes.count; slot += 1) {
      const hosts = hostsOf.get(slot) ?? [];
      const hasRest = prefixes.lastSecond(slot) > second - windowSeconds;
      if (hosts.length < 2 && !hasRest) {
        this.#counters.unwatch(prefixes, slot, Direction.inbound);
        continue;
      }
      const last = this.#sums.read(prefixes, slot, Direction.inbound, second);
      for (const host of hosts) this.#counters.hosts.addBin(host, Direction.inbound, second, last);
      const target: Target = { kind: 'prefix', value: prefixText(prefixes, slot) };
      const set = this.#sums.setOf(prefixes, slot);
      const thresholds = set.prefix.inbound;
      if (
        !isHot(last, set.prefixLimits, Direction.inbound, thresholds) &&
        !judge.hasOpen(target, 'inbound')
      ) {
        this.#counters.unwatch(prefixes, slot, Direction.inbound);
        continue;
      }
      this.#counters.watch(prefixes, slot, Direction.inbound);
      const detail = this.#counters.detailOf(prefixes, slot, Direction.inbound);
      yield {
        ...{ target, direction: 'inbound', thresholds, detail },
        ...this.#prefixSeconds(slot, hosts, second, judge),
      };
    }
  }

  /**
   * The sums of a prefix over its hosts, without those that are targets of their own; over all of them while so many are
   * attacked that the prefix is the target.
   */
  #prefixSeconds(
    slot: number,
    hosts: readonly number[],
    second: number,
    judge: Judge,
  ): Pick<TargetWindow, 'seconds' | 'overall'> {
    const seconds = secondsUpTo(second);
    const sums = seconds.map((at): TargetSecond => {
      const counts = emptyCounts();
      this.#counters.prefixes.addBin(slot, Direction.inbound, at, counts);
      return { counts, opposite: emptyCounts() };
    });
    const ratios = new Map(hosts.map((host) => [host, seconds.map((at) => this.#sums.ratioOf(host, at))]));
    const reached = seconds.map(
      (_, i) => [...ratios.values()].filter((ofHost) => ofHost[i]! >= spreadRatio).length,
    );
    const isSpread = reached.some((count) => count >= spreadHosts);
    for (const [host, ofHost] of ratios) {
      const isOwnTarget = ofHost.some((ratio) => ratio >= aloneRatio) || this.#sums.isAttacked(host, judge);
      if (isSpread || !isOwnTarget) this.#sums.addHost(host, seconds, sums);
    }
    const attack = reached.map((count) => count / spreadHosts);
    return { seconds: sums, overall: { attack, volume: attack.map(() => 0) } };
  }

  /** The last closed seconds of a host, the newest last. */
  #secondsOf(slot: number, direction: DirectionName, second: number): TargetSecond[] {
    const { hosts } = this.#counters;
    const own = Direction[direction];
    return secondsUpTo(second).map((at) => {
      const counts = emptyCounts();
      const opposite = emptyCounts();
      hosts.addBin(slot, own, at, counts);
      hosts.addBin(slot, 1 - own, at, opposite);
      return { counts, opposite };
    });
  }
}

function push(lists: Map<number, number[]>, key: number, value: number): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
