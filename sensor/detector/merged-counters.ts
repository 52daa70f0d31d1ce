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
  countedSendersMax,
  countsOf,
  Direction,
  isNetwork,
  Kind,
  kindCount,
  type MemberSecond,
  networkSlot,
  type PrefixGroups,
  packetsOf,
  readRows,
  type SlotDetail,
  type SlotKind,
  SlotTable,
  TrafficDetail,
} from '#sensor/attack-counters/index.ts';
import type { CountedTargets } from './host-sums.ts';
import { Watched, watchedShift } from './kernel-watch.ts';
import { type Amount, type Counts, emptyCounts, totalOf } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** What one that was seen stands for. */
type Factor = Amount;

/** All packets of a direction, and in the layout of `Bin`. */
interface Counted extends Amount {
  counts: Counts;
}

/** What the kernel counted of a host whose packets the threads tell apart. */
interface Expected {
  state: number;
  counted: readonly [Counted, Counted];
}

/** A connection that is used has at least so many segments of who opens it. */
const segmentsOfConnection = 2;
/** Who converses sends at least one packet for so many that it gets. */
const packetsAnswered = 20;
/** What may be an attack by itself. */
const oneWayKinds = [
  ...[Kind.opening, Kind.openingAnswer, Kind.segment, Kind.reset, Kind.reflection, Kind.datagram, Kind.reply],
  ...[Kind.icmp, Kind.icmpAnswer, Kind.fragment, Kind.protocol],
];

export class MergedCounters implements CountedTargets {
  readonly hosts = new SlotTable(countedHostsMax, 2, windowSeconds, 1);
  readonly prefixes = new SlotTable(countedPrefixesMax, 1, windowSeconds, 2);
  readonly senders = new SlotTable(countedSendersMax, 1, windowSeconds, 3);
  #groups: PrefixGroups;
  readonly #details = new Map<string, TrafficDetail>();
  /** The slots whose part of the open second the threads tell, with all that the kernel counted; null without its part. */
  #watched: Map<number, Expected> | null = null;
  /** By what the threads' part of the second before was multiplied. */
  #factors = new Map<string, Factor>();

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

  /**
   * Adds the kernel's part of the second, before those of the threads. Who is watched counts by what the threads tell apart, and this
   * much in all. Returns the packets of addresses without room.
   */
  addKernel(second: number, part: MemberSecond): number {
    this.#watched = new Map();
    return this.add(second, part);
  }

  /**
   * The threads' parts are there: what they did not see of those who are watched counts as what they saw. `isLossy`: of every second,
   * not only of the first ones.
   */
  completeWatched(second: number, isLossy: boolean): void {
    const watched = this.#watched ?? new Map<number, Expected>();
    this.#watched = null;
    this.#factors = new Map();
    const unseen = new Map<number, number[]>();
    for (const [slot, { state, counted }] of watched) {
      const isAsSeen = state === Watched.wholly && !isLossy;
      for (const direction of [Direction.inbound, Direction.outbound] as const) {
        const seen = this.hosts.sumOf(slot, direction);
        if (seen.packets >= counted[direction].packets) continue;
        if (seen.packets > 0) {
          if (!isAsSeen) this.#complete(slot, direction, second, counted, isLossy);
        } else if (direction === Direction.outbound) this.#addUnknown(slot, direction, counted);
        else unseen.set(this.prefixOf(slot), [...(unseen.get(this.prefixOf(slot)) ?? []), slot]);
      }
    }
    for (const [prefix, slots] of unseen) this.#completePrefix(prefix, slots, second, watched);
  }

  /** Whether it was part of conversations is not known: traffic, but no attack. */
  #addUnknown(slot: number, direction: 0 | 1, counted: Expected['counted']): void {
    const { packets, bytes } = counted[direction];
    this.hosts.add(slot, direction, Kind.twoWayDatagram, packets, bytes, 0, 0);
  }

  /** The threads saw a part of what a host sent or received. */
  #complete(
    slot: number,
    direction: 0 | 1,
    second: number,
    counted: Expected['counted'],
    isLossy: boolean,
  ): void {
    const { hosts } = this;
    const seen = emptyCounts();
    hosts.addBin(slot, direction, second, seen);
    const [all, before] = [counted[direction], totalOf(seen)];
    const factor = { packets: all.packets / before.packets, bytes: Math.max(1, all.bytes / before.bytes) };
    hosts.multiply(slot, direction, factor, !isLossy);
    this.#factors.set(factorKey(hosts.version(slot), hosts.words(slot), direction), factor);
    if (!isLossy) return;
    // Where packets are lost, conversations look one-way. So no more counts as one-way than was seen, but for what none can explain.
    for (const kind of oneWayKinds) {
      const scaled = Math.round(seen[kind]! * factor.packets);
      const most = Math.ceil(withoutConversations(kind, all.counts, counted[1 - direction]!.counts));
      const packets = scaled - Math.max(seen[kind]!, Math.min(scaled, most));
      if (packets <= 0) continue;
      const bytes = Math.floor((seen[Bin.bytes + kind]! * factor.bytes * packets) / scaled);
      hosts.move(slot, { place: 0, direction, second, from: kind, to: Kind.twoWayDatagram, packets, bytes });
    }
  }

  /** The threads saw nothing of some hosts of a prefix: that counts in the prefix, as what they saw of the others. */
  #completePrefix(
    prefix: number,
    slots: readonly number[],
    second: number,
    watched: ReadonlyMap<number, Expected>,
  ): void {
    const { hosts, prefixes } = this;
    const mix = emptyCounts();
    if (prefix >= 0) prefixes.addBin(prefix, 0, second, mix);
    const known = totalOf(mix).packets;
    for (const slot of watched.keys())
      if (this.prefixOf(slot) === prefix) hosts.addBin(slot, Direction.inbound, second, mix);
    const total = totalOf(mix);
    const missing = slots.reduce((sum, slot) => sum + watched.get(slot)!.counted[0].packets, 0);
    // What the threads had no room for by host is in the prefix already.
    const share = 1 - Math.min(1, known / missing);
    const packetsAt = new Map<number, number>();
    for (const slot of slots) {
      const { counted } = watched.get(slot)!;
      const [w0, w1] = [hosts.keyWord(slot, 0), hosts.keyWord(slot, 1)];
      const network = hosts.version(slot) === 6 ? networkSlot(prefixes, w0, w1, countedPrefixesMax / 2) : -1;
      if (total.packets === 0) this.#addUnknown(slot, Direction.inbound, counted);
      else
        for (const place of [prefix, network])
          packetsAt.set(place, (packetsAt.get(place) ?? 0) + counted[0].packets * share);
    }
    for (const [place, packets] of packetsAt)
      for (let kind = 0; kind < kindCount && place >= 0; kind += 1) {
        const own = Math.round((mix[kind]! * packets) / total.packets);
        const bytes = Math.round((mix[Bin.bytes + kind]! * packets) / total.packets);
        if (own > 0) prefixes.add(place, 0, kind, own, bytes, 0, 0);
      }
  }
  /** Adds one thread's part of the second. Returns the packets of addresses without room. */
  add(second: number, part: MemberSecond): number {
    let overflowed = 0;
    const { hosts, prefixes } = this;
    const watched = this.#watched;
    readRows(part.hosts, (row) => {
      const state = row.version >> watchedShift;
      row.version &= (1 << watchedShift) - 1;
      if (watched !== null && part.kernel === undefined) {
        const known = hosts.find(row.version, row.w0, row.w1, row.w2, row.w3);
        if (known < 0 || !watched.has(known)) return;
      }
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
      if (slot >= 0 && state !== Watched.not) {
        const counted = [
          countedIn(part.hosts, row.bits, row.at),
          countedIn(part.hosts, row.otherBits, row.otherAt),
        ] as const;
        watched!.set(slot, { state, counted });
        return;
      }
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
      if (slot < 0) continue;
      const factor = this.#factors.get(factorKey(version, words, move.direction));
      const packets = Math.round(move.packets * (factor?.packets ?? 1));
      const bytes = Math.round(move.bytes * (factor?.bytes ?? 1));
      hosts.move(slot, { ...move, packets, bytes, second: second - 1 });
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

function countedIn(rows: Float64Array, bits: number, at: number): Counted {
  const counts = countsOf(rows, bits, at);
  return { ...totalOf(counts), counts };
}

/** How many of the packets of a kind conversations can not explain at most. */
function withoutConversations(kind: number, own: Counts, opposite: Counts): number {
  if (kind === Kind.opening) return own[kind]! - own[Kind.segment]! / segmentsOfConnection;
  const isUdp = kind === Kind.datagram || kind === Kind.reply || kind === Kind.reflection;
  const sent = (counts: Counts) =>
    isUdp ? counts[Kind.datagram]! + counts[Kind.reflection]! : counts[kind]!;
  return sent(own) - sent(opposite) * packetsAnswered;
}

const factorKey = (version: number, words: readonly number[], direction: number) =>
  `${version} ${words.join(' ')} ${direction}`;

function detailKey(kind: SlotKind, version: number, words: readonly number[], direction: number): string {
  return `${kind} ${version} ${words.join(' ')} ${direction}`;
}
