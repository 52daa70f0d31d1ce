/**
 * Counts packets of protected addresses for the attack detector: one-second bins for each address, direction and kind.
 *
 * An address without room counts in its prefix (/24, /48), so a flood over many addresses is still seen as a whole;
 * `overflowed` counts these packets. Seconds are numbers that the caller increases; the caller owns the clock. Packets wait
 * in a batch: `settle` counts them, before anything is read.
 */
import {
  Exchange,
  Field,
  type LocalScope,
  type Packet,
  type PacketTap,
  parseWords,
  randomKey,
} from '#sensor/capture/index.ts';
import type { DetailLimits } from './detail-limits.ts';
import { Direction } from './direction.ts';
import { flatLimits, KnownHosts } from './known-hosts.ts';
import { networkSlot } from './network-slots.ts';
import { Entry, entryBytesMax, Noted, PacketBatch } from './packet-batch.ts';
import { PacketDetails } from './packet-details.ts';
import { blockMax, PacketFinder } from './packet-finder.ts';
import { type Move, Place, placeOf } from './pair-record.ts';
import { PairTable } from './pair-table.ts';
import type { PrefixGroups } from './prefix-groups.ts';
import { ProtectedScope } from './protected-scope.ts';
import { Sampler } from './sampler.ts';
import { SenderCounters } from './sender-counters.ts';
import { SlotTable } from './slot-table.ts';
import type { TrafficDetail } from './traffic-detail.ts';
import { WatchedSlots } from './watched-slots.ts';

export const countedHostsMax = 4096;
export const countedPrefixesMax = 1024;
/** Bins of a table: the open second and those that a decision looks at. */
const binsOfHistory = 6;
/** One prefix takes at most this many host slots, so that a sweep over a /48 leaves room for others. */
const hostsPrefixMax = 1024;
/** Seconds without a packet after which a slot may be removed, and how often that is done. */
const quietSecondsMax = binsOfHistory;
const removeEverySeconds = 2;
/** Smallest usual segment: the upper bound of packets in a merged frame. */
const segmentBytesMin = 536;

export interface AttackCountersOptions {
  /** The protected addresses; null for every unicast address that receives. */
  scope: LocalScope | null;
  /** Of addresses in no group, then of each group. */
  limits: readonly DetailLimits[];
  /** Addresses with limits of their own. */
  groups?: PrefixGroups;
  /** Seconds that are kept; by default what a decision looks at. */
  bins?: number;
  /** Key of the hashes; random by default. */
  key?: readonly [number, number];
  /** Counts the pairs of every host in `pairs.counts`; otherwise of those with a detail. */
  countsPairs?: boolean;
}

export class AttackCounters implements PacketTap {
  readonly hosts: SlotTable;
  readonly prefixes: SlotTable;
  /** Servers' MACs, with what they sent from addresses that are not theirs. */
  readonly senders: SlotTable;
  /** Which traffic is ordinary because both ends converse. */
  readonly pairs: PairTable;
  /** Packets of protected addresses that had no slot of their own. */
  overflowed = 0;
  /** Addresses that got a slot. */
  hostsSeen = 0;
  /** Number of frames that were merged out of an unknown number of packets. */
  mergedFrames = 0;

  readonly #scope: ProtectedScope;
  protected readonly limits: readonly DetailLimits[];
  readonly #groups: PrefixGroups | null;
  /** The first slots belong to the exact addresses of the scope, and stay. */
  readonly #pinned: number;
  readonly #batch = new PacketBatch();
  readonly #details: PacketDetails;
  readonly #finder: PacketFinder;
  readonly #known: KnownHosts;
  readonly #senders: SenderCounters;
  /** The addresses of a packet that goes the long way, the source's first. */
  readonly #ends = new Int32Array(8);
  readonly #watched = new WatchedSlots();
  #watchedPrefixes = 0;
  readonly #countsPairs: boolean;
  #removedAt = 0;
  #second = 0;

  constructor(options: AttackCountersOptions) {
    const { bins = binsOfHistory, countsPairs = false } = options;
    this.#countsPairs = countsPairs;
    const key = options.key ?? randomKey();
    this.#scope = new ProtectedScope(options.scope);
    this.limits = options.limits;
    this.#groups = options.groups ?? null;
    const sampler = new Sampler(key[0]);
    this.#details = new PacketDetails(this.#batch, sampler, this.#watched);
    this.hosts = new SlotTable(countedHostsMax, 2, bins, key[0]);
    this.prefixes = new SlotTable(countedPrefixesMax, 1, bins, key[1]);
    this.#senders = new SenderCounters({
      ...{ scope: options.scope, bins, key: key[1], limits: options.limits[0]! },
      ...{ batch: this.#batch, details: this.#details, watched: this.#watched },
    });
    this.senders = this.#senders.table;
    for (const address of options.scope?.addresses ?? []) {
      const { version, words } = parseWords(address);
      this.#newSlot(version, ...words);
    }
    this.#pinned = this.hosts.count;
    const { hosts } = this;
    const batch = this.#batch;
    this.pairs = new PairTable(batch, key[0] ^ key[1], (one) => this.move(one));
    const limits = flatLimits(options.limits);
    this.#finder = new PacketFinder({ batch, scope: this.#scope, hosts });
    this.#known = new KnownHosts({
      batch,
      finder: this.#finder,
      hosts,
      pairs: this.pairs,
      limits,
      sampler,
      onOverflow: (at) => this.#countOverflow(at),
      onSample: (slot, direction, at, kind, weight) =>
        this.#details.addSample(this.hosts, slot, direction, at, kind, weight),
      onBusy: (slot, direction, at, kind, packets, inBin) =>
        this.#detail(slot, direction, at, kind, packets, inBin),
    });
  }

  /** The second that is counted now. */
  protected get second(): number {
    return this.#second;
  }

  /** True when some slot has a detail. */
  protected get hasDetails(): boolean {
    return !this.#watched.isEmpty;
  }

  /** The limits of a slot's addresses. */
  protected limitsOf(table: SlotTable, slot: number): DetailLimits {
    return this.limits[table.group(slot)]!;
  }

  /** Counts what waits in the open second, and tells ordinary traffic from the rest: it may be read. */
  finish(): void {
    this.settle();
    this.pairs.close(this.hasDetails || this.#countsPairs);
  }

  /** Counts packets of a second that is kept by another kind. */
  protected move(one: Move): void {
    const isHost = one.place < Place.prefix;
    if (isHost) this.hosts.move(one.place - Place.host, one);
    else this.prefixes.move(one.place - Place.prefix, one);
  }

  /** Opens a later second. What waits belongs to the former one. */
  open(second: number): void {
    this.finish();
    this.#second = this.#details.second = second;
    this.pairs.open(second);
    this.hosts.open(second);
    this.prefixes.open(second);
    this.#senders.open(second);
    const { count } = this.hosts;
    if (count <= this.#pinned || count <= (countedHostsMax * 3) / 4) return;
    if (second - this.#removedAt < removeEverySeconds) return;
    this.#removedAt = second;
    this.#removeQuiet();
  }

  /** The detail of a slot, null without one. */
  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    const detail = this.#watched.detailOf(table, slot, direction);
    if (detail && table === this.hosts) detail.pairs = this.pairs.counts.ofHost(slot);
    return detail;
  }

  /** Gives a slot a detail, if one is free. */
  watch(table: SlotTable, slot: number, direction: number): void {
    if (this.#watched.watch(table, slot, direction, this.#second) && table === this.prefixes)
      this.#watchedPrefixes += 1;
  }

  /** Takes a slot's detail back. */
  unwatch(table: SlotTable, slot: number, direction: number): void {
    if (this.#watched.unwatch(table, slot, direction) && table === this.prefixes) this.#watchedPrefixes -= 1;
  }

  /** False for packets that are only counted if their source is made up. */
  protected isWatched(_p: Packet): boolean {
    return true;
  }

  protected isFlowWatched(_version: number, _words: Int32Array, _base: number): boolean {
    return true;
  }

  packet(p: Packet, packets: number, isUnknown: boolean, exchange: number): void {
    let unknown = 0;
    if (isUnknown) {
      this.mergedFrames += 1;
      unknown = Math.ceil(p.ipLength / segmentBytesMin) - 1;
    }
    const sender = this.#senders.ofPacket(p);
    if (sender === 0 && (!this.isWatched(p) || (this.#scope.isNarrow && !this.#scope.mayHoldPacket(p))))
      return;
    const batch = this.#batch;
    batch.addPacket(p, packets, unknown, exchange, sender);
    if (batch.isFull) this.settle();
  }

  wantsFlow(words: Int32Array, base: number): boolean {
    const version = (words[base + Field.meta]! >> 8) & 0xff;
    if (this.isFlowWatched(version, words, base) && this.#scope.mayHoldEnds(version, words, base) !== 0)
      return true;
    return (this.#senders.ofFlow(words, base, 0) | this.#senders.ofFlow(words, base, 1)) !== 0;
  }

  flow(
    words: Int32Array,
    base: number,
    side: number,
    packets: number,
    bytes: number,
    exchange: number,
  ): void {
    const batch = this.#batch;
    const sender = this.#senders.ofFlow(words, base, side);
    let rest = bytes;
    for (; rest > entryBytesMax; rest -= entryBytesMax) {
      batch.addFlow(words, base, side, 0, entryBytesMax, exchange & Exchange.isTwoWay, sender);
      if (batch.isFull) this.settle();
    }
    batch.addFlow(words, base, side, packets, rest, exchange, sender);
    if (batch.isFull) this.settle();
  }

  turn(second: number, _packets: number): void {
    this.open(second);
  }

  /** Counts the packets that wait. */
  settle(): void {
    const batch = this.#batch;
    const finder = this.#finder;
    for (let first = 0; first < batch.count; first += blockMax) {
      const count = finder.find(first, Math.min(first + blockMax, batch.count));
      for (let one = 0; one < count; one += 1) {
        // While a prefix is looked at, each packet is told to it too.
        if (this.#watchedPrefixes === 0) one = this.#known.count(one, count, this.#second);
        if (one < count) this.#count(finder.found[one]!);
      }
    }
    batch.count = 0;
  }

  /** Counts the packet of the entry at `at`, of any kind and with any ends. */
  #count(at: number): void {
    const { words } = this.#batch;
    const meta = words[at + Entry.meta]!;
    const version = (meta >> 8) & 0xff;
    if (words[at + Entry.sender] !== 0) this.#senders.count(at);
    const ends = this.#batch.readEnds(at, this.#ends);
    let source = ((meta >> Noted.ends) & 1) === 0 ? -1 : this.#find(version, ends, 0);
    let target = ((meta >> Noted.ends) & 2) === 0 ? -1 : this.#find(version, ends, 4);
    let sides = (source >= 0 ? 1 : 0) | (target >= 0 ? 2 : 0);
    // Addresses of a prefix, and of everything, get their slots with their first packets.
    if (sides !== 3 && this.#scope.hasPrefixes) sides |= this.#newSides(version, ends);
    if (sides === 0) return;
    const [isInbound, isOutbound] = [(sides & 2) !== 0, (sides & 1) !== 0];
    const needsPrefix = isInbound && (target < 0 || this.#watchedPrefixes > 0);
    const prefix = needsPrefix ? this.#prefixSlot(version, ends, 4) : -1;
    if (isInbound && target < 0) target = this.#newHost(prefix, version, ends, 4);
    if (isOutbound && source < 0 && !this.#scope.isOpen)
      source = this.#newHost(this.#prefixSlot(version, ends, 0), version, ends, 0);
    const kind = this.pairs.note(
      at,
      isOutbound ? placeOf(source, -1) : Place.none,
      isInbound ? placeOf(target, prefix) : Place.none,
      this.hasDetails,
    );
    const packets = words[at + Entry.packets]!;
    const bytes = words[at + Entry.bytes]!;
    const unknown = words[at + Entry.unknown]!;
    const opened = (meta >> Noted.opened) & 3;
    if (isInbound) {
      if (prefix >= 0 && this.prefixes.detail(prefix, 0) !== 0)
        this.#details.addSampled(this.prefixes, prefix, Direction.inbound, at, kind, packets);
      if (target >= 0) {
        const inBin = this.hosts.add(target, Direction.inbound, kind, packets, bytes, unknown, opened);
        this.#detail(target, Direction.inbound, at, kind, packets, inBin);
      } else {
        this.overflowed += packets;
        if (prefix >= 0) this.prefixes.add(prefix, 0, kind, packets, bytes, unknown, opened);
        const network =
          version === 6 ? networkSlot(this.prefixes, ends[4]!, ends[5]!, countedPrefixesMax / 2) : -1;
        if (network >= 0) this.prefixes.add(network, 0, kind, packets, bytes, unknown, opened);
      }
    }
    if (!isOutbound) return;
    if (source >= 0) {
      const inBin = this.hosts.add(source, Direction.outbound, kind, packets, bytes, unknown, opened);
      this.#detail(source, Direction.outbound, at, kind, packets, inBin);
    } else if (!this.#scope.isOpen) this.overflowed += packets;
  }

  /** Counts a packet whose address finds all slots in use. The usual one, inbound by IPv4, needs no more than its prefix. */
  #countOverflow(at: number): void {
    const { words } = this.#batch;
    const meta = words[at + Entry.meta]!;
    if (((meta >> Noted.ends) & 3) !== 2 || ((meta >> 8) & 0xff) !== 4) {
      this.#count(at);
      return;
    }
    const target = words[at + Entry.target]!;
    if (!this.#scope.hasIpv4(target)) return;
    const packets = words[at + Entry.packets]!;
    const opened = (meta >> Noted.opened) & 3;
    this.overflowed += packets;
    const prefix = this.prefixes.locate(4, 0, 0, 0, target & ~255);
    if (prefix < 0) return;
    const kind = this.pairs.note(at, Place.none, Place.prefix + prefix, false);
    const bytes = words[at + Entry.bytes]!;
    const unknown = words[at + Entry.unknown]!;
    this.prefixes.add(prefix, 0, kind, packets, bytes, unknown, opened);
  }

  #find(version: number, words: Int32Array, at: number): number {
    return this.hosts.find(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
  }

  /** Which ends are protected. Bit 0: the source; bit 1: the target. */
  #newSides(version: number, ends: Int32Array): number {
    if (!this.#scope.isOpen) return this.#scope.ends(version, ends, 0);
    const isGroup = version === 4 ? ends[7]! >>> 28 >= 14 : ends[4]! >>> 24 === 255;
    return isGroup ? 1 : 3;
  }

  #prefixSlot(version: number, words: Int32Array, at: number): number {
    return version === 4
      ? this.prefixes.locate(4, 0, 0, 0, words[at + 3]! & ~255)
      : this.prefixes.locate(6, words[at]!, words[at + 1]! & ~65_535, 0, 0);
  }

  #newHost(prefix: number, version: number, words: Int32Array, at: number): number {
    if (this.hosts.isFull) return -1;
    const hosts = prefix < 0 ? 0 : this.prefixes.hosts(prefix);
    if (hosts >= hostsPrefixMax) return -1;
    const slot = this.#newSlot(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
    if (slot < 0) return -1;
    this.hostsSeen += 1;
    if (prefix >= 0) this.prefixes.setHosts(prefix, hosts + 1);
    return slot;
  }

  #newSlot(version: number, w0: number, w1: number, w2: number, w3: number): number {
    const slot = this.hosts.locate(version, w0, w1, w2, w3);
    if (slot >= 0 && this.#groups) this.hosts.setGroup(slot, this.#groups.of(version, w0, w1, w2, w3));
    return slot;
  }

  /** Adds a packet that was counted to its slot's detail, if it has one or should have one. */
  #detail(slot: number, direction: number, at: number, kind: number, packets: number, inBin: number): void {
    const { hosts } = this;
    if (hosts.detail(slot, direction) === 0) {
      const limits = this.limitsOf(hosts, slot);
      const isBusy =
        inBin >= limits.packets[direction]![kind]! ||
        hosts.hasBytes(slot, direction, kind, limits.bytes[direction]!);
      if (!isBusy) return;
      this.watch(hosts, slot, direction);
    }
    this.#details.add(hosts, slot, direction, at, kind, packets, inBin);
  }

  /** Removes slots whose bins are all empty; nothing is lost with them. */
  #removeQuiet(): void {
    const since = this.#second - quietSecondsMax;
    const keep = (table: SlotTable, isKept: (slot: number) => boolean) => {
      const kept: number[] = [];
      for (let slot = 0; slot < table.count; slot += 1) {
        if (isKept(slot)) kept.push(slot);
        else for (const direction of [0, 1]) this.unwatch(table, slot, direction);
      }
      table.keepOnly(kept);
    };
    const { hosts, prefixes } = this;
    keep(hosts, (slot) => slot < this.#pinned || hosts.lastSecond(slot) > since);
    for (let prefix = 0; prefix < prefixes.count; prefix += 1) prefixes.setHosts(prefix, 0);
    for (let slot = this.#pinned; slot < hosts.count; slot += 1) {
      const prefix = this.prefixOf(slot);
      if (prefix >= 0) prefixes.setHosts(prefix, prefixes.hosts(prefix) + 1);
    }
    keep(prefixes, (prefix) => prefixes.hosts(prefix) > 0 || prefixes.lastSecond(prefix) > since);
  }

  /** The slot of a host's prefix, -1 without one. */
  prefixOf(host: number): number {
    const { hosts, prefixes } = this;
    return hosts.version(host) === 4
      ? prefixes.find(4, 0, 0, 0, hosts.keyWord(host, 3) & ~255)
      : prefixes.find(6, hosts.keyWord(host, 0), hosts.keyWord(host, 1) & ~65_535, 0, 0);
  }
}
