/**
 * Counts packets of protected addresses for the attack detector: one-second bins for each address, direction and kind,
 * in at most 16 MiB for 4,096 addresses.
 *
 * An address without room counts in its prefix (/24, /48), so a flood over many addresses is still seen as a whole;
 * `overflowed` counts these packets. Seconds are numbers that the caller increases; the caller owns the clock.
 */
import type { LocalScope } from '../capture.ts';
import { decodeFrame } from '../decode/decode-link.ts';
import { Packet, Protocol, Verdict } from '../decode/packet.ts';
import { compileLocalScope, type LocalRanges } from '../local-scope.ts';
import { randomKey } from '../random-key.ts';
import { FlowMemory, hashDirection } from './flow-memory.ts';
import { isTwoWayKind, Kind, kindOf } from './packet-kind.ts';
import { Bin, binsPerSlot, SlotTable, SlotWord } from './slot-table.ts';
import { TrafficDetail } from './traffic-detail.ts';

const hostsMax = 4096;
const prefixesMax = 1024;
/** One prefix takes at most this many host slots, so that a sweep over a /48 leaves room for others. */
const hostsPrefixMax = 1024;
const detailsMax = 64;
/** Packets of a slot's bin after which only every eighth, chosen at random, adds to its detail. */
const sampledFrom = 2000;
const sampleEvery = 8;
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
  limits: DetailLimits;
  /** Key of the hashes; random by default. */
  key?: readonly [number, number];
}

export class AttackCounters {
  readonly hosts: SlotTable;
  readonly prefixes: SlotTable;
  /** Packets of protected addresses that had no slot of their own. */
  overflowed = 0;
  /** Addresses that got a slot. */
  hostsSeen = 0;
  /** Number of frames that were merged out of an unknown number of packets. */
  mergedFrames = 0;

  readonly #scope: LocalRanges | null;
  readonly #limits: DetailLimits;
  readonly #key: readonly [number, number];
  readonly #packet = new Packet();
  readonly #ends = new Int32Array(8);
  readonly #sent = new FlowMemory();
  readonly #answered = new FlowMemory();
  readonly #details: TrafficDetail[] = [];
  readonly #freeDetails: number[] = [];
  #watchedPrefixes = 0;
  #second = 0;
  #random = 1;
  /** A server that answered an opening waits for what follows. */
  readonly #isTwoWay = (p: Packet) => {
    const hash = hashDirection(p, true, this.#key);
    return this.#sent.has(hash) || (p.protocol === Protocol.tcp && this.#answered.has(hash));
  };

  constructor(options: AttackCountersOptions) {
    this.#key = options.key ?? randomKey();
    this.#scope = options.scope && compileLocalScope(options.scope);
    this.#limits = options.limits;
    this.#random = this.#key[0] | 1;
    this.hosts = new SlotTable(hostsMax, 2, this.#key[0]);
    this.prefixes = new SlotTable(prefixesMax, 1, this.#key[1]);
  }

  /** Opens a later second. */
  open(second: number): void {
    this.#second = second;
    this.#sent.turn(second);
    this.#answered.turn(second);
    if (this.hosts.count > (hostsMax * 3) / 4) this.#removeQuiet();
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
    if (decodeFrame(p, linkType, offset) === Verdict.ip) this.#count(p, segments);
  }

  /** The detail of a slot, null without one. */
  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    const number = table.word(slot, SlotWord.detail + direction);
    return number === 0 ? null : this.#details[number - 1]!;
  }

  /** Gives a slot a detail, if one is free. */
  watch(table: SlotTable, slot: number, direction: number): void {
    if (table.word(slot, SlotWord.detail + direction) !== 0) return;
    let number = this.#freeDetails.pop();
    if (number === undefined) {
      if (this.#details.length === detailsMax) return;
      number = this.#details.push(new TrafficDetail());
    }
    this.#details[number - 1]!.reset(table.version(slot), this.#second);
    table.setWord(slot, SlotWord.detail + direction, number);
    if (table === this.prefixes) this.#watchedPrefixes += 1;
  }

  /** Takes a slot's detail back. */
  unwatch(table: SlotTable, slot: number, direction: number): void {
    const number = table.word(slot, SlotWord.detail + direction);
    if (number === 0) return;
    table.setWord(slot, SlotWord.detail + direction, 0);
    if (table === this.prefixes) this.#watchedPrefixes -= 1;
    this.#freeDetails.push(number);
  }

  #count(p: Packet, segments: number): void {
    const packets = segments > 0 ? segments : 1;
    const unknown = segments > 0 ? 0 : Math.ceil(p.ipLength / segmentBytesMin) - 1;
    if (segments === 0) this.mergedFrames += 1;
    const sides = this.#sides(p);
    if (sides === 0) return;
    const kind = kindOf(p, this.#isTwoWay);
    const { version, source0, source1, source2, source3, target0, target1, target2, target3 } = p;
    const { hosts } = this;
    let target = (sides & 2) === 0 ? -1 : hosts.find(version, target0, target1, target2, target3);
    let source = (sides & 1) === 0 ? -1 : hosts.find(version, source0, source1, source2, source3);
    const isFlood =
      this.#isFlooded(target, Direction.inbound, kind) || this.#isFlooded(source, Direction.outbound, kind);
    const opened = this.#remember(p, kind, isFlood) ? 1 : 0;
    if ((sides & 2) !== 0) {
      const needsPrefix = target < 0 || this.#watchedPrefixes > 0;
      const prefix = needsPrefix ? this.#prefixSlot(version, target0, target1, target3) : -1;
      if (target < 0) target = this.#newHost(prefix, version, target0, target1, target2, target3);
      if (prefix >= 0 && this.prefixes.word(prefix, SlotWord.detail) !== 0)
        this.#addDetail(this.prefixes, prefix, Direction.inbound, p, kind, packets, 0);
      if (target >= 0) this.#add(target, Direction.inbound, p, kind, packets, unknown, opened);
      else {
        this.overflowed += packets;
        if (prefix >= 0)
          this.prefixes.add(prefix, 0, this.#second, kind, packets, p.ipLength, unknown, opened);
      }
    }
    if ((sides & 1) !== 0) {
      if (source < 0 && this.#scope !== null) {
        const prefix = this.#prefixSlot(version, source0, source1, source3);
        source = this.#newHost(prefix, version, source0, source1, source2, source3);
        if (source < 0) this.overflowed += packets;
      }
      if (source >= 0) this.#add(source, Direction.outbound, p, kind, packets, unknown, opened);
    }
  }

  /** True when a host had so many packets of this kind in the open second that more say nothing about their flows. */
  #isFlooded(slot: number, direction: number, kind: number): boolean {
    if (slot < 0) return false;
    return (
      this.hosts.packetsSoFar(slot, direction, this.#second, kind) >= this.#limits.packets[direction]![kind]!
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
  #remember(p: Packet, kind: number, isFlood: boolean): boolean {
    if (kind === Kind.opening || kind === Kind.reset || kind === Kind.fragment) return false;
    if (kind === Kind.icmp || kind === Kind.icmpAnswer) return false;
    if (isFlood && !isTwoWayKind(kind) && kind !== Kind.openingAnswer) return false;
    const hash = hashDirection(p, false, this.#key);
    if (kind === Kind.openingAnswer) {
      this.#answered.add(hash);
      return false;
    }
    const isFirst = p.protocol === Protocol.tcp && !this.#sent.has(hash);
    this.#sent.add(hash);
    return isFirst && this.#answered.has(hashDirection(p, true, this.#key));
  }

  #prefixSlot(version: number, w0: number, w1: number, w3: number): number {
    return version === 4
      ? this.prefixes.locate(4, 0, 0, 0, w3 & ~255)
      : this.prefixes.locate(6, w0, w1 & ~65_535, 0, 0);
  }

  #newHost(prefix: number, version: number, w0: number, w1: number, w2: number, w3: number): number {
    const hosts = prefix < 0 ? 0 : this.prefixes.word(prefix, SlotWord.hosts);
    if (hosts >= hostsPrefixMax) return -1;
    const slot = this.hosts.locate(version, w0, w1, w2, w3);
    if (slot < 0) return -1;
    this.hostsSeen += 1;
    if (prefix >= 0) this.prefixes.setWord(prefix, SlotWord.hosts, hosts + 1);
    return slot;
  }

  #add(
    slot: number,
    direction: number,
    p: Packet,
    kind: number,
    packets: number,
    unknown: number,
    opened: number,
  ): void {
    const { hosts } = this;
    const bin = hosts.add(slot, direction, this.#second, kind, packets, p.ipLength, unknown, opened);
    const inBin = hosts.sum(bin + kind);
    if (hosts.word(slot, SlotWord.detail + direction) === 0) {
      const isBusy =
        inBin >= this.#limits.packets[direction]![kind]! ||
        hosts.sum(bin + Bin.bytes + kind) >= this.#limits.bytes[direction]!;
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
        if (table.lastSecond(slot) > this.#second - binsPerSlot) kept.push(slot);
        else for (const direction of [0, 1]) this.unwatch(table, slot, direction);
      }
      return kept;
    };
    this.hosts.keepOnly(recent(this.hosts));
    const hostsOf = new Map<number, number>();
    for (let slot = 0; slot < this.hosts.count; slot += 1) {
      const prefix = this.prefixOf(slot);
      if (prefix >= 0) hostsOf.set(prefix, (hostsOf.get(prefix) ?? 0) + 1);
    }
    const kept: number[] = [];
    for (let prefix = 0; prefix < this.prefixes.count; prefix += 1) {
      this.prefixes.setWord(prefix, SlotWord.hosts, hostsOf.get(prefix) ?? 0);
      if (hostsOf.has(prefix) || this.prefixes.lastSecond(prefix) > this.#second - binsPerSlot)
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
