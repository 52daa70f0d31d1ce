/**
 * Counts packets of protected addresses for the attack detector: one-second bins for each address, direction and kind.
 *
 * An address without room counts in its prefix (/24, /48), so a flood over many addresses is still seen as a whole;
 * `overflowed` counts these packets. Seconds are numbers that the caller increases; the caller owns the clock. Packets wait
 * in a batch: `settle` counts them, before anything is read.
 */
import {
  decodeFrame,
  Field,
  type LocalScope,
  Packet,
  type PacketTap,
  Protocol,
  parseWords,
  randomKey,
  Verdict,
} from '#sensor/capture/index.ts';
import type { DetailLimits } from './detail-limits.ts';
import { Direction } from './direction.ts';
import { FlowMemory, Mark, marksOfEnd } from './flow-memory.ts';
import { flatLimits, KnownHosts, Limit } from './known-hosts.ts';
import { Entry, entryBytesMax, entryWords, kindShift, PacketBatch } from './packet-batch.ts';
import { PacketDetails } from './packet-details.ts';
import { datagramKind, isRemembered, Kind, oneWayKindOf, twoWayKindOf } from './packet-kind.ts';
import type { PrefixGroups } from './prefix-groups.ts';
import { ProtectedScope } from './protected-scope.ts';
import { Sampler } from './sampler.ts';
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
}

export class AttackCounters implements PacketTap {
  readonly hosts: SlotTable;
  readonly prefixes: SlotTable;
  /** Packets of protected addresses that had no slot of their own. */
  overflowed = 0;
  /** Addresses that got a slot. */
  hostsSeen = 0;
  /** Number of frames that were merged out of an unknown number of packets. */
  mergedFrames = 0;

  readonly #scope: ProtectedScope;
  protected readonly limits: readonly DetailLimits[];
  readonly #limits: Int32Array;
  readonly #groups: PrefixGroups | null;
  /** The first slots belong to the exact addresses of the scope, and stay. */
  readonly #pinned: number;
  readonly #packet = new Packet();
  readonly #batch = new PacketBatch();
  readonly #flows: FlowMemory;
  readonly #details: PacketDetails;
  readonly #known: KnownHosts;
  readonly #watched = new WatchedSlots();
  #watchedPrefixes = 0;
  #removedAt = 0;
  #second = 0;

  constructor(options: AttackCountersOptions) {
    const { bins = binsOfHistory } = options;
    const key = options.key ?? randomKey();
    this.#scope = new ProtectedScope(options.scope);
    this.limits = options.limits;
    this.#limits = flatLimits(options.limits);
    this.#groups = options.groups ?? null;
    const sampler = new Sampler(key[0]);
    this.#details = new PacketDetails(this.#batch, sampler, this.#watched);
    this.#flows = new FlowMemory(key);
    this.hosts = new SlotTable(countedHostsMax, 2, bins, key[0]);
    this.prefixes = new SlotTable(countedPrefixesMax, 1, bins, key[1]);
    for (const address of options.scope?.addresses ?? []) {
      const { version, words } = parseWords(address);
      this.#newSlot(version, ...words);
    }
    this.#pinned = this.hosts.count;
    this.#known = new KnownHosts({
      batch: this.#batch,
      hosts: this.hosts,
      flows: this.#flows,
      limits: this.#limits,
      mayGrow: this.#scope.hasPrefixes,
      sampler,
      onOverflow: (entry) => this.#count(entry),
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

  /** Opens a later second. What waits belongs to the former one. */
  open(second: number): void {
    this.settle();
    this.#second = this.#details.second = second;
    this.hosts.open(second);
    this.prefixes.open(second);
    this.#flows.turn(second);
    const { count } = this.hosts;
    if (count <= this.#pinned || count <= (countedHostsMax * 3) / 4) return;
    if (second - this.#removedAt < removeEverySeconds) return;
    this.#removedAt = second;
    this.#removeQuiet();
  }

  /** Counts one frame. `segments` as in `Capture.observe`. */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    linkType: number,
    segments: number,
  ): void {
    const p = this.#packet;
    p.attach(bytes);
    p.end = Math.min(offset + capturedLength, bytes.length);
    p.wireEnd = Math.max(offset + wireLength, p.end);
    if (decodeFrame(p, linkType, offset) === Verdict.ip)
      this.packet(p, Math.max(1, segments), segments === 0);
  }

  /** The detail of a slot, null without one. */
  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    return this.#watched.detailOf(table, slot, direction);
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

  packet(p: Packet, packets: number, isUnknown: boolean): void {
    if (isUnknown) this.mergedFrames += 1;
    const { version } = p;
    const ends =
      (this.#scope.mayHold(version, p.source0, p.source1, p.source2, p.source3) ? 1 : 0) |
      (this.#scope.mayHold(version, p.target0, p.target1, p.target2, p.target3) ? 2 : 0);
    if (ends === 0) return;
    const unknown = isUnknown ? Math.ceil(p.ipLength / segmentBytesMin) - 1 : 0;
    const batch = this.#batch;
    batch.addPacket(p, ends, oneWayKindOf(p), packets, unknown);
    if (batch.isFull) this.settle();
  }

  wantsFlow(words: Int32Array, base: number): boolean {
    return this.#scope.endsOf(words, base) !== 0;
  }

  flow(words: Int32Array, base: number, side: number, packets: number, bytes: number): void {
    const ports = words[base + Field.ports]!;
    const isTcp = (words[base + Field.meta]! & 0xff) === Protocol.tcp;
    // Packets of the fast path are acknowledgements or datagrams.
    const kind = isTcp ? Kind.segment : datagramKind(side === 0 ? ports >>> 16 : ports & 0xffff);
    const batch = this.#batch;
    const ends = this.#scope.endsOf(words, base);
    let rest = bytes;
    for (; rest > entryBytesMax; rest -= entryBytesMax) {
      batch.addFlow(words, base, side, ends, kind, 0, entryBytesMax);
      if (batch.isFull) this.settle();
    }
    batch.addFlow(words, base, side, ends, kind, packets, rest);
    if (batch.isFull) this.settle();
  }

  turn(second: number, _packets: number): void {
    this.open(second);
  }

  /** Counts the packets that wait. */
  settle(): void {
    const batch = this.#batch;
    if (batch.count === 0) return;
    this.#flows.find(batch);
    for (let entry = 0; entry < batch.count; entry += 1) {
      // While a prefix is looked at, each packet is told to it too.
      if (this.#watchedPrefixes === 0) entry = this.#known.count(entry, this.#second);
      if (entry < batch.count) this.#count(entry);
    }
    batch.count = 0;
  }

  #count(entry: number): void {
    const { words } = this.#batch;
    const at = entry * entryWords;
    const flags = words[at + Entry.flags]!;
    const side = flags & 1;
    const version = (words[at + Entry.meta]! >> 8) & 0xff;
    const from = at + side * 4;
    const to = at + 4 - side * 4;
    let source = (flags & (2 << side)) === 0 ? -1 : this.#find(version, words, from);
    let target = (flags & (4 >> side)) === 0 ? -1 : this.#find(version, words, to);
    let sides = (source >= 0 ? 1 : 0) | (target >= 0 ? 2 : 0);
    // Addresses of a prefix, and of everything, get their slots with their first packets.
    if (sides !== 3 && this.#scope.hasPrefixes) sides |= this.#newSides(version, words, at, side);
    if (sides === 0) return;
    const packets = words[at + Entry.packets]!;
    const bytes = words[at + Entry.bytes]!;
    const unknown = words[at + Entry.unknown]!;
    let kind = flags >> kindShift;
    let opened = 0;
    if (isRemembered[kind] === 1) {
      const marks = this.#flows.marksOf(entry);
      const isTcp = (words[at + Entry.meta]! & 0xff) === Protocol.tcp;
      const other = marksOfEnd(marks, 1 - side);
      const isAnswered = isTcp && (other & Mark.anyAnswered) !== 0;
      if (kind === Kind.openingAnswer) this.#flows.note(entry, Mark.answered, side);
      else {
        // A server that answered an opening waits for what follows.
        const isTwoWay = isAnswered || (other & Mark.anySent) !== 0;
        if (isTwoWay) kind = twoWayKindOf[kind]!;
        // One-way packets of a flood are not remembered: they would fill the memory until the flood looks two-way.
        if (isTwoWay || !this.#isFlood(source, target, kind)) {
          // The packet that completes a handshake.
          if (isAnswered && (marksOfEnd(marks, side) & Mark.anySent) === 0) opened = 1;
          this.#flows.note(entry, Mark.sent, side);
        }
      }
    }
    if ((sides & 2) !== 0) {
      const needsPrefix = target < 0 || this.#watchedPrefixes > 0;
      const prefix = needsPrefix ? this.#prefixSlot(version, words, to) : -1;
      if (target < 0) target = this.#newHost(prefix, version, words, to);
      if (prefix >= 0 && this.prefixes.detail(prefix, 0) !== 0)
        this.#details.addSampled(this.prefixes, prefix, Direction.inbound, at, kind, packets);
      if (target >= 0) this.#add(target, Direction.inbound, at, kind, packets, bytes, unknown, opened);
      else {
        this.overflowed += packets;
        if (prefix >= 0) this.prefixes.add(prefix, 0, kind, packets, bytes, unknown, opened);
      }
    }
    if ((sides & 1) !== 0) {
      if (source < 0 && !this.#scope.isOpen) {
        const prefix = this.#prefixSlot(version, words, from);
        source = this.#newHost(prefix, version, words, from);
        if (source < 0) this.overflowed += packets;
      }
      if (source >= 0) this.#add(source, Direction.outbound, at, kind, packets, bytes, unknown, opened);
    }
  }

  #find(version: number, words: Int32Array, at: number): number {
    if (version === 4) return this.hosts.find4(words[at + 3]!);
    return this.hosts.find(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
  }

  /** Which ends of an entry are protected. Bit 0: the source; bit 1: the target. */
  #newSides(version: number, words: Int32Array, at: number, side: number): number {
    if (this.#scope.isOpen) {
      const to = at + 4 - side * 4;
      const isGroup = version === 4 ? words[to + 3]! >>> 28 >= 14 : words[to]! >>> 24 === 255;
      return isGroup ? 1 : 3;
    }
    const sides = this.#scope.sides(version, words, at);
    return side === 0 ? sides : (sides >> 1) | ((sides & 1) << 1);
  }

  /** True when an end had so many packets of this kind in the open second that more say nothing about their flows. */
  #isFlood(source: number, target: number, kind: number): boolean {
    const { hosts } = this;
    const limits = this.#limits;
    if (target >= 0) {
      const limit = limits[hosts.group(target) * Limit.group + kind]!;
      if (hosts.packetsSoFar(target, Direction.inbound, kind) >= limit) return true;
    }
    if (source < 0) return false;
    const limit = limits[hosts.group(source) * Limit.group + Limit.direction + kind]!;
    return hosts.packetsSoFar(source, Direction.outbound, kind) >= limit;
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
    const slot =
      version === 4
        ? this.#newSlot(4, 0, 0, 0, words[at + 3]!)
        : this.#newSlot(6, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
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

  #add(
    slot: number,
    direction: number,
    at: number,
    kind: number,
    packets: number,
    bytes: number,
    unknown: number,
    opened: number,
  ): void {
    const { hosts } = this;
    const inBin = hosts.add(slot, direction, kind, packets, bytes, unknown, opened);
    this.#detail(slot, direction, at, kind, packets, inBin);
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
