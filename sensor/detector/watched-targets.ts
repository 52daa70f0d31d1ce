/**
 * Finds the targets worth judging among the counters: hosts with much traffic, and prefixes whose hosts have much
 * together while none of them has too much alone (carpet bombing).
 */
import { type AttackCounters, Direction, type SlotTable } from '#sensor/attack-counters/index.ts';
import { isHot } from './heat.ts';
import type { Target } from './incident.ts';
import type { Judge, TargetSecond, TargetWindow } from './judge.ts';
import { attackRatios, largest } from './ratios.ts';
import type { ThresholdSet } from './threshold-book.ts';
import { type DirectionName, directionNames } from './thresholds.ts';
import { attackPart, type Counts, emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** A host from this ratio on is a target of its own, not a part of its prefix. */
const aloneRatio = 1;

/** Counters of several seconds, by slots. */
export type CountedTargets = Pick<
  AttackCounters,
  'hosts' | 'prefixes' | 'prefixOf' | 'detailOf' | 'watch' | 'unwatch'
>;

export class WatchedTargets {
  readonly #counters: CountedTargets;
  readonly #sets: readonly ThresholdSet[];
  readonly #counts = emptyCounts();

  /** `sets`: by the group of a slot. */
  constructor(counters: CountedTargets, sets: readonly ThresholdSet[]) {
    this.#counters = counters;
    this.#sets = sets;
  }

  #setOf(table: SlotTable, slot: number): ThresholdSet {
    return this.#sets[table.group(slot)]!;
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
    const counts = this.#read(hosts, slot, Direction[direction], second);
    const set = this.#setOf(hosts, slot);
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
      const last = this.#read(prefixes, slot, Direction.inbound, second);
      for (const host of hosts) this.#counters.hosts.addBin(host, Direction.inbound, second, last);
      const target: Target = {
        kind: 'prefix',
        value: `${prefixes.text(slot)}/${prefixes.version(slot) === 4 ? 24 : 48}`,
      };
      const set = this.#setOf(prefixes, slot);
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
      const seconds = this.#prefixSeconds(slot, hosts, second, judge);
      yield { target, direction: 'inbound', thresholds, seconds, detail };
    }
  }

  /** The sums of a prefix over its hosts, without those that are targets of their own. */
  #prefixSeconds(slot: number, hosts: readonly number[], second: number, judge: Judge): TargetSecond[] {
    const table = this.#counters.hosts;
    const seconds = secondsUpTo(second);
    const sums = seconds.map((at) => {
      const counts = emptyCounts();
      this.#counters.prefixes.addBin(slot, Direction.inbound, at, counts);
      return { counts, opposite: emptyCounts() };
    });
    for (const host of hosts) {
      if (seconds.some((at) => this.#isAlone(host, at)) || this.#isAttacked(host, judge)) continue;
      for (const [i, at] of seconds.entries()) {
        table.addBin(host, Direction.inbound, at, sums[i]!.counts);
        table.addBin(host, Direction.outbound, at, sums[i]!.opposite);
      }
    }
    return sums;
  }

  #isAttacked(host: number, judge: Judge): boolean {
    if (judge.openCount === 0) return false;
    return judge.isAttacked({ kind: 'host', value: this.#counters.hosts.text(host) }, 'inbound');
  }

  /** True when a host exceeds a threshold in a second by itself. */
  #isAlone(host: number, second: number): boolean {
    const table = this.#counters.hosts;
    const counts = this.#read(table, host, Direction.inbound, second);
    const { host: thresholds, hostLimits } = this.#setOf(table, host);
    if (!isHot(counts, hostLimits, Direction.inbound, thresholds.inbound)) return false;
    const opposite = emptyCounts();
    table.addBin(host, Direction.outbound, second, opposite);
    const part = attackPart(counts, opposite, 'inbound', null);
    return largest(attackRatios(part, thresholds.inbound, 1, null)) >= aloneRatio;
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

  /** The bin of a slot, in an array that is used again. */
  #read(table: SlotTable, slot: number, direction: number, second: number): Counts {
    const counts = this.#counts.fill(0);
    table.addBin(slot, direction, second, counts);
    return counts;
  }
}

function secondsUpTo(second: number): number[] {
  return Array.from({ length: windowSeconds }, (_, i) => second - windowSeconds + 1 + i).filter(
    (at) => at >= 0,
  );
}

function push(lists: Map<number, number[]>, key: number, value: number): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
