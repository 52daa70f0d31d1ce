/**
 * Reads the counters of a closed second once, for all that is asked about every address: which hosts are worth a closer look, what
 * each prefix received together with its hosts, and what all of them received.
 *
 * With thousands of busy addresses most of the time is waiting for their counters, so no question reads them again.
 */
import {
  Bin,
  binLength,
  countedHostsMax,
  Direction,
  isNetwork,
  Kind,
  kindCount,
  type SlotTable,
} from '#sensor/attack-counters/index.ts';
import { isSlotHot, wholeRatesFrom } from './heat.ts';
import type { CountedTargets } from './host-sums.ts';
import type { ThresholdSet } from './threshold-book.ts';
import { directionNames } from './thresholds.ts';
import { type Counts, emptyCounts, totalOf } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** Limits of a group in one array: of all packets, bytes and opened connections, then of packets by kind; by direction. */
const Limit = { packets: 0, bytes: 1, opened: 2, byKind: 3, direction: 32, group: 64 } as const;

export class SecondScan {
  /** By slot and direction: 1 for a host that was worth a closer look. */
  readonly hot = new Uint8Array(countedHostsMax * 2);
  /** By slot of a prefix: inbound counters with those of its hosts, and how many hosts had traffic in the window. */
  prefixCounts = new Float64Array(0);
  hostsIn = new Int32Array(0);
  /** What all hosts sent: packets, and one-way segments of TCP among them. */
  readonly sent = { packets: 0, segments: 0 };
  readonly #counters: CountedTargets;
  readonly #sets: readonly ThresholdSet[];
  readonly #limits: Float64Array;
  #prefixes = 0;

  /** `sets`: by the group of a slot. */
  constructor(counters: CountedTargets, sets: readonly ThresholdSet[]) {
    this.#counters = counters;
    this.#sets = sets;
    this.#limits = flatLimits(sets);
  }

  /** Reads a closed second. */
  read(second: number): void {
    const { hosts, prefixes } = this.#counters;
    this.#clear(prefixes.count);
    const { hot, hostsIn, prefixCounts } = this;
    for (let slot = 0; slot < prefixes.count; slot += 1)
      // The packets of a /64 are those of its /48 too.
      if (!isNetwork(prefixes, slot))
        prefixes.addBin(slot, Direction.inbound, second, prefixCounts, slot * binLength);
    const isLow = hosts.counters.isLow;
    for (let slot = 0; slot < hosts.count; slot += 1) {
      const last = hosts.lastSecond(slot);
      if (last <= second - windowSeconds) continue;
      const prefix = this.#counters.prefixOf(slot);
      if (prefix >= 0) hostsIn[prefix]! += 1;
      const at = slot * 2;
      if (last !== second) hot[at] = hot[at + 1] = 0;
      else {
        // Hosts without a prefix have the place after all prefixes.
        const sums = (prefix >= 0 ? prefix : prefixes.count) * binLength;
        if (isLow) this.#readHost(hosts, slot, second, sums);
        else this.#readLargeHost(hosts, slot, second, sums);
      }
    }
  }

  /** What all addresses received in the second that was read. */
  total(): Counts {
    const total = emptyCounts();
    for (let at = 0; at < (this.#prefixes + 1) * binLength; at += 1)
      total[at % binLength]! += this.prefixCounts[at]!;
    return total;
  }

  #clear(prefixes: number): void {
    this.#prefixes = prefixes;
    this.sent.packets = this.sent.segments = 0;
    const length = (prefixes + 1) * binLength;
    if (this.prefixCounts.length < length) {
      this.prefixCounts = new Float64Array(length);
      this.hostsIn = new Int32Array(prefixes + 1);
    }
    this.prefixCounts.fill(0, 0, length);
    this.hostsIn.fill(0);
  }

  /** Over plain numbers, because it is done for each host in each second. */
  #readHost(hosts: SlotTable, slot: number, second: number, sums: number): void {
    const { low } = hosts.counters;
    const { prefixCounts, hot } = this;
    const limits = this.#limits;
    const bin = hosts.binOf(slot, 0, second);
    const group = hosts.group(slot) * Limit.group;
    for (let direction = 0; direction < 2; direction += 1) {
      const own = bin + direction * binLength;
      const limit = group + direction * Limit.direction;
      const opened = low[own + Bin.opened]!;
      let isHot = opened >= limits[limit + Limit.opened]!;
      let packets = 0;
      let bytes = 0;
      for (let kind = 0; kind < kindCount; kind += 1) {
        const ofKind = low[own + kind * 2]!;
        if (ofKind === 0) continue;
        const bytesOfKind = low[own + kind * 2 + 1]!;
        packets += ofKind;
        bytes += bytesOfKind;
        if (ofKind >= limits[limit + Limit.byKind + kind]!) isHot = true;
        if (direction !== Direction.inbound) continue;
        prefixCounts[sums + kind]! += ofKind;
        prefixCounts[sums + Bin.bytes + kind]! += bytesOfKind;
      }
      isHot ||= packets >= limits[limit + Limit.packets]! || bytes >= limits[limit + Limit.bytes]!;
      hot[slot * 2 + direction] = isHot ? 1 : 0;
      if (direction !== Direction.inbound) {
        this.sent.packets += packets;
        this.sent.segments += low[own + Kind.segment * 2]!;
        continue;
      }
      prefixCounts[sums + Bin.opened]! += opened;
      prefixCounts[sums + Bin.unknown]! += low[own + Bin.unknown]!;
      prefixCounts[sums + Bin.used]! += low[own + Bin.used]!;
    }
  }

  /** The same where some counter has more than 31 bits. */
  #readLargeHost(hosts: SlotTable, slot: number, second: number, sums: number): void {
    const { host, hostLimits } = this.#sets[hosts.group(slot)]!;
    const sent = emptyCounts();
    hosts.addBin(slot, Direction.outbound, second, sent);
    this.sent.packets += totalOf(sent).packets;
    this.sent.segments += sent[Kind.segment]!;
    for (const direction of directionNames) {
      const own = Direction[direction];
      const isHot = isSlotHot(hosts, slot, own, second, hostLimits, host[direction]);
      this.hot[slot * 2 + own] = isHot ? 1 : 0;
    }
    hosts.addBin(slot, Direction.inbound, second, this.prefixCounts, sums);
  }
}

function flatLimits(sets: readonly ThresholdSet[]): Float64Array {
  const flat = new Float64Array(sets.length * Limit.group);
  for (const [group, { host, hostLimits }] of sets.entries()) {
    for (const direction of directionNames) {
      const own = Direction[direction];
      const at = group * Limit.group + own * Limit.direction;
      const whole = wholeRatesFrom(host[direction]);
      flat[at + Limit.packets] = whole.packets;
      flat[at + Limit.bytes] = hostLimits.bytes[own]!;
      flat[at + Limit.opened] = whole.opened;
      flat.set(hostLimits.packets[own]!, at + Limit.byKind);
    }
  }
  return flat;
}
