/**
 * The seconds of all threads of one capture, added: what a decision looks at, by slots.
 *
 * As bounded as the counters of one thread. Addresses that only several threads together have no room for count in
 * their prefix, and as overflowed.
 */
import {
  Bin,
  countedHostsMax,
  countedPrefixesMax,
  kindCount,
  type MemberSecond,
  type PrefixGroups,
  rowCounters,
  rowLength,
  type SlotDetail,
  SlotTable,
  SlotWord,
  TrafficDetail,
} from '#sensor/attack-counters/index.ts';
import { windowSeconds } from './trigger.ts';
import type { CountedTargets } from './watched-targets.ts';

export class MergedCounters implements CountedTargets {
  readonly hosts = new SlotTable(countedHostsMax, 2, windowSeconds, 1);
  readonly prefixes = new SlotTable(countedPrefixesMax, 1, windowSeconds, 2);
  #groups: PrefixGroups;
  readonly #details = new Map<string, TrafficDetail>();

  constructor(groups: PrefixGroups) {
    this.#groups = groups;
  }

  /** Replaces the groups of thresholds. */
  regroup(groups: PrefixGroups): void {
    this.#groups = groups;
    for (const table of [this.hosts, this.prefixes])
      for (let slot = 0; slot < table.count; slot += 1) this.#setGroup(table, slot);
  }

  /** Begins another second. */
  open(second: number): void {
    this.#details.clear();
    this.#removeQuiet(this.hosts, second, (countedHostsMax * 3) / 4);
    this.#removeQuiet(this.prefixes, second, countedPrefixesMax / 2);
  }

  /** Adds one thread's part of the second. Returns the packets of addresses without room. */
  add(second: number, part: MemberSecond): number {
    let overflowed = 0;
    for (let at = 0; at < part.hosts.length; at += rowLength) {
      const slot = this.#slotOf(this.hosts, part.hosts, at);
      const prefix = this.#prefixOfRow(part.hosts, at);
      // The last second in which one of its hosts had traffic.
      if (prefix >= 0) this.prefixes.setWord(prefix, SlotWord.hosts, second);
      if (slot >= 0) {
        this.hosts.addAll(slot, part.hosts[at + 5]!, second, part.hosts, at + rowCounters);
        continue;
      }
      for (let kind = 0; kind < kindCount; kind += 1)
        overflowed += part.hosts[at + rowCounters + Bin.packets + kind]!;
      if (prefix >= 0 && part.hosts[at + 5] === 0)
        this.prefixes.addAll(prefix, 0, second, part.hosts, at + rowCounters);
    }
    for (let at = 0; at < part.prefixes.length; at += rowLength) {
      const slot = this.#slotOf(this.prefixes, part.prefixes, at);
      if (slot >= 0) this.prefixes.addAll(slot, 0, second, part.prefixes, at + rowCounters);
    }
    for (const one of part.details) this.#join(one);
    return overflowed;
  }

  prefixOf(host: number): number {
    const { hosts, prefixes } = this;
    return hosts.version(host) === 4
      ? prefixes.find(4, 0, 0, 0, hosts.keyWord(host, 3) & ~255)
      : prefixes.find(6, hosts.keyWord(host, 0), hosts.keyWord(host, 1) & ~65_535, 0, 0);
  }

  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    const words = [0, 1, 2, 3].map((word) => table.keyWord(slot, word));
    return this.#details.get(detailKey(table === this.prefixes, words, direction)) ?? null;
  }

  /** The group of a host's thresholds. */
  groupOf(host: number): number {
    return this.hosts.word(host, SlotWord.group);
  }

  /** The threads decide by themselves what they look at. */
  watch(): void {}
  unwatch(): void {}

  #slotOf(table: SlotTable, rows: Float64Array, at: number): number {
    const before = table.count;
    const slot = table.locate(rows[at]!, rows[at + 1]!, rows[at + 2]!, rows[at + 3]!, rows[at + 4]!);
    if (table.count > before) this.#setGroup(table, slot);
    return slot;
  }

  /** The slot of the prefix of a host's row, so that the host counts in it. */
  #prefixOfRow(rows: Float64Array, at: number): number {
    const { prefixes } = this;
    const before = prefixes.count;
    const slot =
      rows[at] === 4
        ? prefixes.locate(4, 0, 0, 0, rows[at + 4]! & ~255)
        : prefixes.locate(6, rows[at + 1]!, rows[at + 2]! & ~65_535, 0, 0);
    if (prefixes.count > before) this.#setGroup(prefixes, slot);
    return slot;
  }

  #setGroup(table: SlotTable, slot: number): void {
    const version = table.version(slot);
    const word = (at: number) => table.keyWord(slot, at);
    const lengthMax = table === this.prefixes ? (version === 4 ? 24 : 48) : 128;
    const group = this.#groups.of(version, word(0), word(1), word(2), word(3), lengthMax);
    table.setWord(slot, SlotWord.group, group);
  }

  #join({ isPrefix, words, direction, summary }: SlotDetail): void {
    const key = detailKey(isPrefix, words, direction);
    const detail = this.#details.get(key) ?? new TrafficDetail();
    this.#details.set(key, detail);
    detail.join(summary);
  }

  /** Slots whose bins are all empty make room. */
  #removeQuiet(table: SlotTable, second: number, usedMax: number): void {
    if (table.count <= usedMax) return;
    const kept: number[] = [];
    for (let slot = 0; slot < table.count; slot += 1)
      if (this.#lastSecondOf(table, slot) > second - windowSeconds) kept.push(slot);
    table.keepOnly(kept);
  }

  /** Hosts keep the slot of their prefix in use. */
  #lastSecondOf(table: SlotTable, slot: number): number {
    if (table === this.hosts) return table.lastSecond(slot);
    return Math.max(table.lastSecond(slot), table.word(slot, SlotWord.hosts));
  }
}

function detailKey(isPrefix: boolean, words: readonly number[], direction: number): string {
  return `${isPrefix} ${words.join(' ')} ${direction}`;
}
