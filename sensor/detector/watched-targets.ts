/**
 * Finds the targets worth judging among the counters: hosts with much traffic, and prefixes of which many hosts are attacked
 * at once (carpet bombing): together they have much while none of them has too much alone, or at least sixteen of them have
 * a part of what would be too much for one.
 */
import {
  binLength,
  Direction,
  isNetwork,
  networkSlot,
  type SlotTable,
} from '#sensor/attack-counters/index.ts';
import { deviceKeyText, parseWords } from '#sensor/capture/index.ts';
import { isHot } from './heat.ts';
import {
  aloneRatio,
  type CountedTargets,
  HostSums,
  networkText,
  prefixText,
  secondsUpTo,
} from './host-sums.ts';
import type { Target } from './incident.ts';
import type { Judge } from './judge.ts';
import { SecondScan } from './second-scan.ts';
import type { TargetSecond, TargetWindow } from './target-window.ts';
import type { ThresholdSet } from './threshold-book.ts';
import { type DirectionName, directionNames } from './thresholds.ts';
import { type Counts, emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** So many hosts of a prefix, each at this part of its thresholds, are an attack on the prefix. */
const spreadHosts = 16;
const spreadRatio = 0.3;

export class WatchedTargets {
  readonly #counters: CountedTargets;
  readonly #set: ThresholdSet;
  readonly #capture: string;
  readonly #sums: HostSums;
  readonly #scan: SecondScan;
  /** The same as `hot`, of the second before: a pulse is judged when it is over. */
  readonly #hotBefore: Uint8Array;

  /** `sets`: by the group of a slot. `capture`: its name. */
  constructor(counters: CountedTargets, sets: readonly ThresholdSet[], capture: string) {
    this.#counters = counters;
    this.#set = sets[0]!;
    this.#capture = capture;
    this.#sums = new HostSums(counters, sets);
    this.#scan = new SecondScan(counters, sets);
    this.#hotBefore = new Uint8Array(this.#scan.hot.length);
  }

  /** Reads a closed second. Returns what all addresses received in it. */
  read(second: number): Counts {
    this.#hotBefore.set(this.#scan.hot);
    this.#scan.read(second);
    return this.#scan.total();
  }

  /** What all addresses sent in the second that was read. */
  get sent(): SecondScan['sent'] {
    return this.#scan.sent;
  }

  /** What a prefix received with its hosts in the second that was read. */
  receivedIn(prefix: number): Counts {
    return this.#scan.prefixCounts.slice(prefix * binLength, (prefix + 1) * binLength);
  }

  /** By slot and direction: 1 for a host that was worth a closer look in the second that was read. */
  get hot(): Uint8Array {
    return this.#scan.hot;
  }

  /** The targets of the closed `second`, which was read. */
  *windows(second: number, judge: Judge): Iterable<TargetWindow> {
    const { hosts } = this.#counters;
    const attacked = this.#attackedHosts(judge);
    const { hot } = this.#scan;
    for (let slot = 0; slot < hosts.count; slot += 1) {
      if (hosts.lastSecond(slot) <= second - windowSeconds) continue;
      for (const direction of directionNames) {
        const at = slot * 2 + Direction[direction];
        const isHot = hot[at] === 1 || this.#hotBefore[at] === 1;
        if (isHot || attacked?.[direction].has(slot)) yield this.hostWindow(slot, direction, second);
        else this.#counters.unwatch(hosts, slot, Direction[direction]);
      }
    }
    yield* this.#prefixWindows(second, judge);
    yield* this.#senderWindows(second, judge);
  }

  /** The slots of hosts with open incidents, null without any: most addresses need no text to be compared. */
  #attackedHosts(judge: Judge): Record<DirectionName, Set<number>> | null {
    if (judge.openCount === 0) return null;
    const slots = { inbound: new Set<number>(), outbound: new Set<number>() };
    for (const { target, direction, drill } of judge.openIncidents()) {
      if (target.kind !== 'host' || drill) continue;
      const { version, words } = parseWords(target.value);
      slots[direction].add(this.#counters.hosts.find(version, words[0]!, words[1]!, words[2]!, words[3]!));
    }
    return slots;
  }

  hostWindow(slot: number, direction: DirectionName, second: number): TargetWindow {
    const { hosts } = this.#counters;
    return {
      ...{ target: { kind: 'host', value: hosts.text(slot) }, direction },
      thresholds: this.#sums.setOf(hosts, slot).host[direction],
      seconds: this.#secondsOf(slot, direction, second),
      detail: this.#counters.detailOf(hosts, slot, Direction[direction]),
    };
  }

  /**
   * What servers send from addresses that are not theirs. No customer has such traffic, so it is judged by the thresholds of addresses in no
   * group, and only what may be an attack of it.
   */
  *#senderWindows(second: number, judge: Judge): Iterable<TargetWindow> {
    const { senders } = this.#counters;
    const { host, hostLimits } = this.#set;
    const seconds = secondsUpTo(second);
    const slots = Array.from({ length: senders.count }, (_, slot) => slot).filter(
      (slot) => senders.lastSecond(slot) > second - windowSeconds,
    );
    for (const [mac, own] of Map.groupBy(slots, (slot) => macText(senders, slot))) {
      const sums = seconds.map((at): TargetSecond => {
        const counts = emptyCounts();
        for (const slot of own) senders.addBin(slot, 0, at, counts);
        return { counts, opposite: emptyCounts() };
      });
      const target: Target = { kind: 'capture', value: this.#capture, mac };
      const isLoud = sums
        .slice(-2)
        .some(({ counts }) => isHot(counts, hostLimits, Direction.outbound, host.outbound));
      if (!isLoud && !judge.hasOpen(target, 'outbound')) {
        for (const slot of own) this.#counters.unwatch(senders, slot, Direction.outbound);
        continue;
      }
      const details = own.flatMap((slot) => this.#counters.detailOf(senders, slot, Direction.outbound) ?? []);
      const [detail = null] = details.sort((a, b) => b.packets - a.packets);
      const overall = { attack: [], volume: seconds.map(() => 0) };
      yield { target, direction: 'outbound', thresholds: host.outbound, seconds: sums, detail, overall };
    }
  }

  *#prefixWindows(second: number, judge: Judge): Iterable<TargetWindow> {
    const { prefixes } = this.#counters;
    const { prefixCounts, hostsIn } = this.#scan;
    const isOpen = judge.openCount > 0;
    let hostsOf: Map<number, number[]> | null = null;
    for (let slot = 0; slot < prefixes.count; slot += 1) {
      if (isNetwork(prefixes, slot)) continue;
      const hasRest = prefixes.lastSecond(slot) > second - windowSeconds;
      const set = this.#sums.setOf(prefixes, slot);
      const thresholds = set.prefix.inbound;
      const last = prefixCounts.subarray(slot * binLength, (slot + 1) * binLength);
      let hasNetwork = false;
      if (
        prefixes.version(slot) === 6 &&
        (isOpen || isHot(last, set.hostLimits, Direction.inbound, set.host.inbound))
      ) {
        hostsOf ??= this.#hostsByPrefix(second);
        for (const window of this.#networkWindows(slot, hostsOf.get(slot) ?? [], second, judge)) {
          hasNetwork = true;
          yield window;
        }
      }
      const isWatched =
        hasNetwork ||
        ((hostsIn[slot]! >= 2 || hasRest) &&
          (isHot(last, set.prefixLimits, Direction.inbound, thresholds) ||
            (isOpen && judge.hasOpen({ kind: 'prefix', value: prefixText(prefixes, slot) }, 'inbound'))));
      if (!isWatched) {
        this.#counters.unwatch(prefixes, slot, Direction.inbound);
        continue;
      }
      this.#counters.watch(prefixes, slot, Direction.inbound);
      const target: Target = { kind: 'prefix', value: prefixText(prefixes, slot) };
      const detail = this.#counters.detailOf(prefixes, slot, Direction.inbound);
      hostsOf ??= this.#hostsByPrefix(second);
      yield {
        ...{ target, direction: 'inbound', thresholds, detail },
        ...this.#prefixSeconds(slot, hostsOf.get(slot) ?? [], second, judge),
      };
    }
  }

  /**
   * The networks of 64 bits of a prefix: a customer has one, so it is judged by the thresholds of one address. Their hosts, and what has no
   * counters of its own.
   */
  *#networkWindows(
    prefix: number,
    hosts: readonly number[],
    second: number,
    judge: Judge,
  ): Iterable<TargetWindow> {
    const { hosts: table, prefixes } = this.#counters;
    const set = this.#sums.setOf(prefixes, prefix);
    const [w0, w1] = prefixes.words(prefix);
    const members = new Map<number, number[]>();
    for (let slot = 0; slot < prefixes.count; slot += 1) {
      const [other0, other1] = prefixes.words(slot);
      if (isNetwork(prefixes, slot) && other0 === w0 && (other1 & ~65_535) === w1) members.set(other1, []);
    }
    for (const host of hosts) {
      const own = table.keyWord(host, 1);
      members.set(own, [...(members.get(own) ?? []), host]);
    }
    const seconds = secondsUpTo(second);
    for (const [own, list] of members) {
      const rest = networkSlot(prefixes, w0, own);
      if (list.length < 2 && rest < 0) continue;
      const sums = this.#restOf(rest, seconds);
      for (const host of list)
        if (!this.#isOwnTarget(host, seconds, judge)) this.#sums.addHost(host, seconds, sums);
      const target: Target = { kind: 'prefix', value: networkText(w0, own) };
      const isLoud = isHot(sums.at(-1)!.counts, set.hostLimits, Direction.inbound, set.host.inbound);
      if (!isLoud && !judge.hasOpen(target, 'inbound')) continue;
      const detail = this.#counters.detailOf(prefixes, prefix, Direction.inbound);
      yield { target, direction: 'inbound', thresholds: set.host.inbound, detail, seconds: sums };
    }
  }

  /** What of a prefix has no counters of its own, by second; empty without a slot. */
  #restOf(slot: number, seconds: readonly number[]): TargetSecond[] {
    return seconds.map((at) => {
      const counts = emptyCounts();
      if (slot >= 0) this.#counters.prefixes.addBin(slot, Direction.inbound, at, counts);
      return { counts, opposite: emptyCounts() };
    });
  }

  #isOwnTarget(host: number, seconds: readonly number[], judge: Judge): boolean {
    return (
      this.#sums.isAttacked(host, judge) || seconds.some((at) => this.#sums.ratioOf(host, at) >= aloneRatio)
    );
  }

  /** The hosts that had traffic lately. */
  #hostsByPrefix(second: number): Map<number, number[]> {
    const { hosts } = this.#counters;
    const found = new Map<number, number[]>();
    for (let slot = 0; slot < hosts.count; slot += 1) {
      if (hosts.lastSecond(slot) <= second - windowSeconds) continue;
      const prefix = this.#counters.prefixOf(slot);
      const list = found.get(prefix);
      if (list) list.push(slot);
      else found.set(prefix, [slot]);
    }
    return found;
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
    const sums = this.#restOf(slot, seconds);
    this.#withoutNetworks(slot, seconds, sums, judge);
    const ratios = new Map(hosts.map((host) => [host, seconds.map((at) => this.#sums.ratioOf(host, at))]));
    const reached = seconds.map(
      (_, i) => [...ratios.values()].filter((ofHost) => ofHost[i]! >= spreadRatio).length,
    );
    const isSpread = reached.some((count) => count >= spreadHosts);
    for (const [host, ofHost] of ratios) {
      if (this.#sums.isInAttackedNetwork(host, judge)) continue;
      const isOwnTarget = ofHost.some((ratio) => ratio >= aloneRatio) || this.#sums.isAttacked(host, judge);
      if (isSpread || !isOwnTarget) this.#sums.addHost(host, seconds, sums);
    }
    const attack = reached.map((count) => count / spreadHosts);
    return { seconds: sums, overall: { attack, volume: attack.map(() => 0) } };
  }

  /** Takes off the sums of a prefix what belongs to networks that are attacked by themselves. */
  #withoutNetworks(
    prefix: number,
    seconds: readonly number[],
    sums: readonly TargetSecond[],
    judge: Judge,
  ): void {
    const { prefixes } = this.#counters;
    if (judge.openCount === 0 || prefixes.version(prefix) !== 6) return;
    const [w0, w1] = prefixes.words(prefix);
    for (let slot = 0; slot < prefixes.count; slot += 1) {
      const [other0, other1] = prefixes.words(slot);
      if (!isNetwork(prefixes, slot) || other0 !== w0 || (other1 & ~65_535) !== w1) continue;
      if (!judge.hasOpen({ kind: 'prefix', value: networkText(other0, other1) }, 'inbound')) continue;
      for (const [i, { counts }] of this.#restOf(slot, seconds).entries())
        for (let at = 0; at < binLength; at += 1) sums[i]!.counts[at]! -= counts[at]!;
    }
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

/** `52:54:00:00:00:01` */
function macText(senders: SlotTable, slot: number): string {
  return deviceKeyText('', senders.keyWord(slot, 2), senders.keyWord(slot, 3)).slice(1);
}
