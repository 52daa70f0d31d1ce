/** What the hosts of a wider target, such as a prefix, have together, and which of them are targets of their own. */
import { type AttackCounters, Direction, type SlotTable } from '#sensor/attack-counters/index.ts';
import { formatWords } from '#sensor/capture/index.ts';
import { isSlotHot } from './heat.ts';
import type { Judge } from './judge.ts';
import { attackRatios, largest } from './ratios.ts';
import type { TargetSecond } from './target-window.ts';
import type { ThresholdSet } from './threshold-book.ts';
import type { DirectionName } from './thresholds.ts';
import { attackPart, type Counts, emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** A host from this ratio on is a target of its own, not a part of a wider one. */
export const aloneRatio = 1;

/** Counters of several seconds, by slots. */
export type CountedTargets = Pick<
  AttackCounters,
  'hosts' | 'prefixes' | 'senders' | 'prefixOf' | 'detailOf' | 'watch' | 'unwatch'
>;

export class HostSums {
  readonly #counters: CountedTargets;
  readonly #sets: readonly ThresholdSet[];
  readonly #counts = emptyCounts();

  /** `sets`: by the group of a slot. */
  constructor(counters: CountedTargets, sets: readonly ThresholdSet[]) {
    this.#counters = counters;
    this.#sets = sets;
  }

  setOf(table: SlotTable, slot: number): ThresholdSet {
    return this.#sets[table.group(slot)]!;
  }

  /** The bin of a slot, in an array that is used again. */
  read(table: SlotTable, slot: number, direction: number, second: number): Counts {
    const counts = this.#counts.fill(0);
    table.addBin(slot, direction, second, counts);
    return counts;
  }

  /** True when a host's second is worth a closer look. */
  isHot(host: number, direction: DirectionName, second: number): boolean {
    const { hosts } = this.#counters;
    const set = this.setOf(hosts, host);
    return isSlotHot(hosts, host, Direction[direction], second, set.hostLimits, set.host[direction]);
  }

  /** How far a host's inbound traffic of a second that may be an attack exceeds its thresholds; 0 where it is far below. */
  ratioOf(host: number, second: number): number {
    const { hosts } = this.#counters;
    if (!this.isHot(host, 'inbound', second)) return 0;
    const { host: thresholds } = this.setOf(hosts, host);
    const counts = this.read(hosts, host, Direction.inbound, second);
    const opposite = emptyCounts();
    hosts.addBin(host, Direction.outbound, second, opposite);
    const part = attackPart(counts, opposite, 'inbound');
    return largest(attackRatios(part, thresholds.inbound, 1, null));
  }

  isAttacked(host: number, judge: Judge): boolean {
    if (judge.openCount === 0) return false;
    return judge.isAttacked({ kind: 'host', value: this.#counters.hosts.text(host) }, 'inbound');
  }

  /** True while the /64 of an IPv6 host has an open inbound incident. */
  isInAttackedNetwork(host: number, judge: Judge): boolean {
    const { hosts } = this.#counters;
    if (judge.openCount === 0 || hosts.version(host) !== 6) return false;
    const value = networkText(hosts.keyWord(host, 0), hosts.keyWord(host, 1));
    return judge.hasOpen({ kind: 'prefix', value }, 'inbound');
  }

  /** True when the host has an open inbound incident. */
  hasIncident(host: number, judge: Judge): boolean {
    if (judge.openCount === 0) return false;
    return judge.hasOpen({ kind: 'host', value: this.#counters.hosts.text(host) }, 'inbound');
  }

  /** Adds a host's seconds to sums of inbound traffic. */
  addHost(host: number, seconds: readonly number[], sums: readonly TargetSecond[]): void {
    const { hosts } = this.#counters;
    for (const [i, at] of seconds.entries()) {
      hosts.addBin(host, Direction.inbound, at, sums[i]!.counts);
      hosts.addBin(host, Direction.outbound, at, sums[i]!.opposite);
    }
  }
}

/** The /64 of an IPv6 host as text. */
export function networkText(w0: number, w1: number): string {
  return `${formatWords(6, w0, w1, 0, 0)}/64`;
}

/** The prefix of a slot as text. */
export function prefixText(prefixes: SlotTable, slot: number): string {
  return `${prefixes.text(slot)}/${prefixes.version(slot) === 4 ? 24 : 48}`;
}

/** The seconds of a window whose last one is `second`. */
export function secondsUpTo(second: number): number[] {
  return Array.from({ length: windowSeconds }, (_, i) => second - windowSeconds + 1 + i).filter(
    (at) => at >= 0,
  );
}
