/**
 * Counts packets of protected addresses for the attack detector: one-second bins for each address, direction and kind,
 * in at most 16 MiB for 4,096 addresses.
 *
 * An address without room counts in its prefix (/24, /48), so a flood over many addresses is still seen as a whole;
 * `overflowed` counts these packets. Seconds are numbers that the caller increases; the caller owns the clock.
 */
import {
  compileLocalScope,
  decodeFrame,
  Field,
  type LocalRanges,
  type LocalScope,
  Packet,
  type PacketTap,
  Protocol,
  parseWords,
  randomKey,
  Verdict,
} from '#sensor/capture/index.ts';
import { FlowMemory } from './flow-memory.ts';
import { isTwoWayKind, Kind, kindOf, mayRemember } from './packet-kind.ts';
import type { PrefixGroups } from './prefix-groups.ts';
import { Bin, SlotTable, SlotWord } from './slot-table.ts';
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
/** Packets of a slot's bin after which only one of so many, chosen at random, adds to its detail. */
const sampledFrom = 128;
const sampleEvery = 32;
/** Smallest usual segment: the upper bound of packets in a merged frame. */
const segmentBytesMin = 536;

export const Direction = { inbound: 0, outbound: 1 } as const;

/** When a target is worth a detail: packets and bytes of one kind in one second, by direction and kind. */
export interface DetailLimits {
  packets: readonly (readonly number[])[];
  bytes: readonly number[];
}

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
  /** Packets of all addresses. */
  packetsSeen = 0;
  /** Addresses that got a slot. */
  hostsSeen = 0;
  /** Number of frames that were merged out of an unknown number of packets. */
  mergedFrames = 0;

  readonly #scope: LocalRanges | null;
  protected readonly limits: readonly DetailLimits[];
  readonly #groups: PrefixGroups | null;
  /** The first slots belong to the exact addresses of the scope, and stay. */
  readonly #pinned: number;
  readonly #key: readonly [number, number];
  readonly #packet = new Packet();
  /** Packets of the fast path are acknowledgements or datagrams. */
  readonly #known = Object.assign(new Packet(), { tcpFlags: 0x10 });
  readonly #ends = new Int32Array(8);
  readonly #flows: FlowMemory;
  readonly #watched = new WatchedSlots();
  #watchedPrefixes = 0;
  #removedAt = 0;
  #second = 0;
  #random = 1;
  /** A server that answered an opening waits for what follows. */
  readonly #isTwoWay = (p: Packet) => {
    this.#flows.find(p);
    return this.#flows.hasOtherSent() || (p.protocol === Protocol.tcp && this.#flows.hasOtherAnswered());
  };

  constructor(options: AttackCountersOptions) {
    const { bins = binsOfHistory } = options;
    this.#key = options.key ?? randomKey();
    this.#scope = options.scope && compileLocalScope(options.scope);
    this.limits = options.limits;
    this.#groups = options.groups ?? null;
    this.#random = this.#key[0] | 1;
    this.#flows = new FlowMemory(this.#key);
    this.hosts = new SlotTable(countedHostsMax, 2, bins, this.#key[0]);
    this.prefixes = new SlotTable(countedPrefixesMax, 1, bins, this.#key[1]);
    for (const address of options.scope?.addresses ?? []) {
      const { version, words } = parseWords(address);
      this.#newSlot(version, ...words);
    }
    this.#pinned = this.hosts.count;
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
    return this.limits[table.word(slot, SlotWord.group)]!;
  }

  /** Opens a later second. */
  open(second: number): void {
    this.#second = second;
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
    const unknown = isUnknown ? Math.ceil(p.ipLength / segmentBytesMin) - 1 : 0;
    this.#count(p, packets, p.ipLength, unknown);
  }

  /** A later second begins. */
  turn(second: number): void {
    this.open(second);
  }

  flow(words: Int32Array, base: number, side: number, packets: number, bytes: number): void {
    const p = this.#known;
    const source = base + side * 4;
    const target = base + 4 - side * 4;
    p.source0 = words[source]!;
    p.source1 = words[source + 1]!;
    p.source2 = words[source + 2]!;
    p.source3 = words[source + 3]!;
    p.target0 = words[target]!;
    p.target1 = words[target + 1]!;
    p.target2 = words[target + 2]!;
    p.target3 = words[target + 3]!;
    const ports = words[base + Field.ports]!;
    p.sourcePort = side === 0 ? ports >>> 16 : ports & 0xffff;
    p.targetPort = side === 0 ? ports & 0xffff : ports >>> 16;
    p.protocol = words[base + Field.meta]! & 0xff;
    p.version = (words[base + Field.meta]! >> 8) & 0xff;
    this.#count(p, packets, bytes, 0);
  }

  #count(p: Packet, packets: number, bytes: number, unknown: number): void {
    this.packetsSeen += packets;
    const sides = this.#sides(p);
    if (sides === 0) return;
    const kind = kindOf(p, this.#isTwoWay);
    const { version, source0, source1, source2, source3, target0, target1, target2, target3 } = p;
    const { hosts } = this;
    let target = (sides & 2) === 0 ? -1 : hosts.find(version, target0, target1, target2, target3);
    let source = (sides & 1) === 0 ? -1 : hosts.find(version, source0, source1, source2, source3);
    const opened = mayRemember(kind) && this.#remember(p, kind, source, target) ? 1 : 0;
    if ((sides & 2) !== 0) {
      const needsPrefix = target < 0 || this.#watchedPrefixes > 0;
      const prefix = needsPrefix ? this.#prefixSlot(version, target0, target1, target3) : -1;
      if (target < 0) target = this.#newHost(prefix, version, target0, target1, target2, target3);
      if (prefix >= 0 && this.prefixes.word(prefix, SlotWord.detail) !== 0)
        this.#addDetail(this.prefixes, prefix, Direction.inbound, p, kind, packets, 0);
      if (target >= 0) this.#add(target, Direction.inbound, p, kind, packets, bytes, unknown, opened);
      else {
        this.overflowed += packets;
        if (prefix >= 0) this.prefixes.add(prefix, 0, this.#second, kind, packets, bytes, unknown, opened);
      }
    }
    if ((sides & 1) !== 0) {
      if (source < 0 && this.#scope !== null) {
        const prefix = this.#prefixSlot(version, source0, source1, source3);
        source = this.#newHost(prefix, version, source0, source1, source2, source3);
        if (source < 0) this.overflowed += packets;
      }
      if (source >= 0) this.#add(source, Direction.outbound, p, kind, packets, bytes, unknown, opened);
    }
  }

  /** True when a host had so many packets of this kind in the open second that more say nothing about their flows. */
  #isFlooded(slot: number, direction: number, kind: number): boolean {
    if (slot < 0) return false;
    return (
      this.hosts.packetsSoFar(slot, direction, this.#second, kind) >=
      this.limitsOf(this.hosts, slot).packets[direction]![kind]!
    );
  }

  /** Bit 0: the source is protected; bit 1: the target is. */
  #sides(p: Packet): number {
    if (this.#scope === null) {
      const isGroup = p.version === 4 ? p.target3 >>> 28 >= 14 : p.target0 >>> 24 === 255;
      return isGroup ? 1 : 3;
    }
    const ends = this.#ends;
    ends[0] = p.source0;
    ends[1] = p.source1;
    ends[2] = p.source2;
    ends[3] = p.source3;
    ends[4] = p.target0;
    ends[5] = p.target1;
    ends[6] = p.target2;
    ends[7] = p.target3;
    return this.#scope.sides(p.version, ends, 0);
  }

  /**
   * Remembers who sent. Returns true when the packet completes a TCP handshake. One-way packets of a flood are not
   * remembered: they would fill the memory until the flood itself looks two-way.
   */
  #remember(p: Packet, kind: number, source: number, target: number): boolean {
    if (!isTwoWayKind(kind) && kind !== Kind.openingAnswer) {
      if (this.#isFlooded(target, Direction.inbound, kind)) return false;
      if (this.#isFlooded(source, Direction.outbound, kind)) return false;
    }
    const flows = this.#flows;
    if (kind === Kind.openingAnswer) {
      flows.find(p);
      flows.noteAnswered();
      return false;
    }
    // The kind was found by the flow, so it is looked at already.
    const isFirst = p.protocol === Protocol.tcp && !flows.hasSent();
    flows.noteSent();
    return isFirst && flows.hasOtherAnswered();
  }

  #prefixSlot(version: number, w0: number, w1: number, w3: number): number {
    return version === 4
      ? this.prefixes.locate(4, 0, 0, 0, w3 & ~255)
      : this.prefixes.locate(6, w0, w1 & ~65_535, 0, 0);
  }

  #newHost(prefix: number, version: number, w0: number, w1: number, w2: number, w3: number): number {
    const hosts = prefix < 0 ? 0 : this.prefixes.word(prefix, SlotWord.hosts);
    if (hosts >= hostsPrefixMax) return -1;
    const slot = this.#newSlot(version, w0, w1, w2, w3);
    if (slot < 0) return -1;
    this.hostsSeen += 1;
    if (prefix >= 0) this.prefixes.setWord(prefix, SlotWord.hosts, hosts + 1);
    return slot;
  }

  #newSlot(version: number, w0: number, w1: number, w2: number, w3: number): number {
    const slot = this.hosts.locate(version, w0, w1, w2, w3);
    if (slot >= 0 && this.#groups)
      this.hosts.setWord(slot, SlotWord.group, this.#groups.of(version, w0, w1, w2, w3));
    return slot;
  }

  #add(
    slot: number,
    direction: number,
    p: Packet,
    kind: number,
    packets: number,
    bytes: number,
    unknown: number,
    opened: number,
  ): void {
    const { hosts } = this;
    const bin = hosts.add(slot, direction, this.#second, kind, packets, bytes, unknown, opened);
    const inBin = hosts.sum(bin + kind);
    if (hosts.word(slot, SlotWord.detail + direction) === 0) {
      const limits = this.limitsOf(hosts, slot);
      const isBusy =
        inBin >= limits.packets[direction]![kind]! ||
        hosts.sum(bin + Bin.bytes + kind) >= limits.bytes[direction]!;
      if (!isBusy) return;
      this.watch(hosts, slot, direction);
    }
    this.#addDetail(hosts, slot, direction, p, kind, packets, inBin);
  }

  #addDetail(
    table: SlotTable,
    slot: number,
    direction: number,
    p: Packet,
    kind: number,
    packets: number,
    inBin: number,
  ): void {
    const detail = this.detailOf(table, slot, direction);
    if (detail === null) return;
    let weight = packets;
    if (inBin > sampledFrom || table === this.prefixes) {
      if (!this.#isSampled()) return;
      weight *= sampleEvery;
    }
    const isReflection = kind === Kind.reflection || kind === Kind.twoWayReflection;
    const port = isReflection ? p.sourcePort : p.targetPort;
    if (direction === Direction.inbound)
      detail.add(kind, port, p.source0, p.source1, p.source2, p.source3, weight, this.#second);
    else detail.add(kind, port, p.target0, p.target1, p.target2, p.target3, weight, this.#second);
  }

  /** True for one call in eight. */
  #isSampled(): boolean {
    let word = this.#random;
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    this.#random = word;
    return (word & (sampleEvery - 1)) === 0;
  }

  /** Removes slots whose bins are all empty; nothing is lost with them. */
  #removeQuiet(): void {
    const recent = (table: SlotTable) => {
      const kept: number[] = [];
      for (let slot = 0; slot < table.count; slot += 1) {
        const isPinned = table === this.hosts && slot < this.#pinned;
        if (isPinned || table.lastSecond(slot) > this.#second - quietSecondsMax) kept.push(slot);
        else for (const direction of [0, 1]) this.unwatch(table, slot, direction);
      }
      return kept;
    };
    this.hosts.keepOnly(recent(this.hosts));
    const hostsOf = new Map<number, number>();
    for (let slot = this.#pinned; slot < this.hosts.count; slot += 1) {
      const prefix = this.prefixOf(slot);
      if (prefix >= 0) hostsOf.set(prefix, (hostsOf.get(prefix) ?? 0) + 1);
    }
    const kept: number[] = [];
    for (let prefix = 0; prefix < this.prefixes.count; prefix += 1) {
      this.prefixes.setWord(prefix, SlotWord.hosts, hostsOf.get(prefix) ?? 0);
      if (hostsOf.has(prefix) || this.prefixes.lastSecond(prefix) > this.#second - quietSecondsMax)
        kept.push(prefix);
      else this.unwatch(this.prefixes, prefix, 0);
    }
    this.prefixes.keepOnly(kept);
  }

  /** The slot of a host's prefix, -1 without one. */
  prefixOf(host: number): number {
    const { hosts, prefixes } = this;
    return hosts.version(host) === 4
      ? prefixes.find(4, 0, 0, 0, hosts.keyWord(host, 3) & ~255)
      : prefixes.find(6, hosts.keyWord(host, 0), hosts.keyWord(host, 1) & ~65_535, 0, 0);
  }
}
