/**
 * The seconds of all threads of one capture, added: what a decision looks at, by slots.
 *
 * As bounded as the counters of one thread. Addresses that only several threads together have no room for count in
 * their prefix, and as overflowed.
 */
import {
  countedHostsMax,
  countedPrefixesMax,
  countedSendersMax,
  isNetwork,
  type MemberSecond,
  type PrefixGroups,
  packetsOf,
  readRows,
  type SlotDetail,
  type SlotKind,
  SlotTable,
  TrafficDetail,
} from '#sensor/attack-counters/index.ts';
import type { CountedTargets } from './host-sums.ts';
import { windowSeconds } from './trigger.ts';

export class MergedCounters implements CountedTargets {
  readonly hosts = new SlotTable(countedHostsMax, 2, windowSeconds, 1);
  readonly prefixes = new SlotTable(countedPrefixesMax, 1, windowSeconds, 2);
  readonly senders = new SlotTable(countedSendersMax, 1, windowSeconds, 3);
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
    this.hosts.open(second);
    this.prefixes.open(second);
    this.senders.open(second);
    this.#removeQuiet(this.hosts, second, (countedHostsMax * 3) / 4);
    this.#removeQuiet(this.prefixes, second, countedPrefixesMax / 2);
    this.#removeQuiet(this.senders, second, countedSendersMax / 2);
  }

  /** Adds one thread's part of the second. Returns the packets of addresses without room. */
  add(second: number, part: MemberSecond): number {
    let overflowed = 0;
    const { hosts, prefixes } = this;
    readRows(part.hosts, (row) => {
      const slot = this.#slotOf(hosts, row.version, row.w0, row.w1, row.w2, row.w3);
      let prefix = slot >= 0 ? this.prefixOf(slot) : -1;
      if (prefix < 0) {
        prefix =
          row.version === 4
            ? this.#slotOf(prefixes, 4, 0, 0, 0, row.w3 & ~255)
            : this.#slotOf(prefixes, 6, row.w0, row.w1 & ~65_535, 0, 0);
        // A host's head has the slot of its prefix, from one on.
        if (slot >= 0) hosts.setHosts(slot, prefix + 1);
      }
      // The last second in which one of its hosts had traffic.
      if (prefix >= 0) prefixes.setHosts(prefix, second);
      if (slot >= 0) {
        hosts.addCounters(slot, 0, row.bits, part.hosts, row.at);
        hosts.addCounters(slot, 1, row.otherBits, part.hosts, row.otherAt);
        return;
      }
      overflowed +=
        packetsOf(part.hosts, row.bits, row.at) + packetsOf(part.hosts, row.otherBits, row.otherAt);
      if (prefix >= 0) prefixes.addCounters(prefix, 0, row.bits, part.hosts, row.at);
    });
    readRows(part.prefixes, (row) => {
      const slot = this.#slotOf(prefixes, row.version, row.w0, row.w1, row.w2, row.w3);
      if (slot >= 0) prefixes.addCounters(slot, 0, row.bits, part.prefixes, row.at);
    });
    readRows(part.senders, (row) => {
      const slot = this.senders.locate(row.version, row.w0, row.w1, row.w2, row.w3);
      if (slot >= 0) this.senders.addCounters(slot, 0, row.bits, part.senders, row.at);
    });
    for (const { version, words, move } of part.earlier) {
      const slot = hosts.find(version, ...words);
      if (slot >= 0) hosts.move(slot, { ...move, second: second - 1 });
    }
    for (const one of part.details) this.#join(one);
    return overflowed;
  }

  prefixOf(host: number): number {
    return this.hosts.hosts(host) - 1;
  }

  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    const words = [0, 1, 2, 3].map((word) => table.keyWord(slot, word));
    const kind = table === this.hosts ? 'host' : table === this.prefixes ? 'prefix' : 'sender';
    return this.#details.get(detailKey(kind, table.version(slot), words, direction)) ?? null;
  }

  /** The threads decide by themselves what they look at. */
  watch(): void {}
  unwatch(): void {}

  #slotOf(table: SlotTable, version: number, w0: number, w1: number, w2: number, w3: number): number {
    const before = table.count;
    const slot = table.locate(version, w0, w1, w2, w3);
    if (table.count > before) this.#setGroup(table, slot);
    return slot;
  }

  #setGroup(table: SlotTable, slot: number): void {
    const version = table.version(slot);
    const word = (at: number) => table.keyWord(slot, at);
    const lengthMax = table === this.prefixes ? (version === 4 ? 24 : isNetwork(table, slot) ? 64 : 48) : 128;
    const group = this.#groups.of(version, word(0), word(1), word(2), word(3), lengthMax);
    table.setGroup(slot, group);
  }

  #join({ kind, version, words, direction, summary }: SlotDetail): void {
    const key = detailKey(kind, version, words, direction);
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
    const before = table.count;
    table.keepOnly(kept);
    if (table === this.prefixes) this.#renumberPrefixes(before, kept);
  }

  /** Prefixes got new numbers: those of hosts follow. */
  #renumberPrefixes(before: number, kept: readonly number[]): void {
    const { hosts } = this;
    const numbers = new Int32Array(before + 1);
    for (const [slot, from] of kept.entries()) numbers[from + 1] = slot + 1;
    for (let slot = 0; slot < hosts.count; slot += 1) hosts.setHosts(slot, numbers[hosts.hosts(slot)]!);
  }

  /** Hosts keep the slot of their prefix in use. */
  #lastSecondOf(table: SlotTable, slot: number): number {
    if (table !== this.prefixes) return table.lastSecond(slot);
    return Math.max(table.lastSecond(slot), table.hosts(slot));
  }
}

function detailKey(kind: SlotKind, version: number, words: readonly number[], direction: number): string {
  return `${kind} ${version} ${words.join(' ')} ${direction}`;
}
